-- Tenants and their API keys. And the operator's switches.

CREATE TABLE tenant (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL GENERATED ALWAYS AS (tenant_id) STORED,
    slug text NOT NULL,
    name text NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}',
    limits jsonb NOT NULL DEFAULT '{}',
    origins text[] NOT NULL DEFAULT '{}',
    llm_api_key bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Not with `id`: a change of the row computes it anew, and if it were part of a key, the change would wait for all who refer to the tenant.
    PRIMARY KEY (tenant_id)
);
CALL make_tenant_table('tenant', 'system');
CREATE UNIQUE INDEX tenant_slug_key ON tenant (slug);

CREATE TABLE api_key (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    name text NOT NULL DEFAULT '',
    scopes text[] NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT api_key_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
);
CALL make_tenant_table('api_key', 'system');
CREATE UNIQUE INDEX api_key_prefix_key ON api_key (prefix);

-- What an operator switches while servers run (`tavernkeep planner off`). It belongs to no tenant. Servers read it with `auth_key`, so
-- each one knows it as soon as it looks a credential up again.
CREATE TABLE operator_switch (
    name text NOT NULL,
    enabled boolean NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name)
);

-- What a key's prefix stands for, and which features the operator switched off. The server then compares the key with the hash. Stores once a
-- minute that the key was used.
CREATE FUNCTION auth_key(key_prefix text) RETURNS TABLE (
    key_id uuid, tenant_id uuid, hash bytea, scopes text[], expires_at timestamptz, revoked_at timestamptz,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE api_key k SET last_used_at = now()
    WHERE k.prefix = key_prefix AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
      AND k.id = (SELECT l.id FROM api_key l WHERE l.prefix = key_prefix FOR NO KEY UPDATE SKIP LOCKED);
    RETURN QUERY SELECT k.id, k.tenant_id, k.hash, k.scopes, k.expires_at, k.revoked_at,
                        t.limits, t.settings, t.version, t.origins, t.llm_api_key,
                        ARRAY(SELECT s.name FROM operator_switch s WHERE NOT s.enabled)
    FROM api_key k JOIN tenant t ON t.tenant_id = k.tenant_id WHERE k.prefix = key_prefix;
END $$;

-- The origins of all tenants, for CORS requests that have no credential yet.
CREATE FUNCTION all_origins() RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT unnest(origins) FROM tenant
$$;

CREATE TRIGGER a_touch BEFORE UPDATE OF name, scopes, expires_at, revoked_at ON api_key FOR EACH ROW
    EXECUTE FUNCTION touch_row();
CREATE TRIGGER a_touch BEFORE UPDATE ON tenant FOR EACH ROW
    EXECUTE FUNCTION touch_row();
