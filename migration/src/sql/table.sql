-- Who may be at the table in a browser: the links of players, and visits.

-- A link with which somebody plays one character, until it is revoked or until it ends. It ends with its key, too, by whose scopes it plays. The
-- server finds it by the hash of its secret. `sealed` is the secret, encrypted, so that the link can be copied again.
CREATE TABLE player_link (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    player_id uuid NOT NULL,
    key_id uuid NOT NULL,
    name text NOT NULL DEFAULT '',
    -- The user or key that made it; null for the operator.
    author uuid,
    hash bytea NOT NULL,
    sealed bytea NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- The last pause in its use of more than half an hour: when the link was last used before it, and first used after it.
    away_since timestamptz,
    back_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT player_link_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT player_link_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT player_link_key_id_fkey FOREIGN KEY (tenant_id, key_id) REFERENCES api_key (tenant_id, id)
);
CALL make_tenant_table('player_link', 'system');
CREATE UNIQUE INDEX player_link_hash_key ON player_link (hash);
CREATE INDEX player_link_list ON player_link (tenant_id, campaign_id, id);
CREATE INDEX player_link_key ON player_link (tenant_id, key_id);
CREATE INDEX player_link_player ON player_link (tenant_id, player_id);

-- Visits that were ended early, until they would have ended anyway.
CREATE TABLE ended_visit (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CALL make_tenant_table('ended_visit', 'system');
CREATE INDEX ended_visit_until ON ended_visit (tenant_id, until);

-- The link with this hash, if it still works, and the prefix of its key. The tenant is not known yet.
CREATE FUNCTION player_link_of(its_hash bytea) RETURNS TABLE (
    tenant_id uuid, id uuid, key_prefix text, campaign_id uuid, player_id uuid, expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT l.tenant_id, l.id, k.prefix, l.campaign_id, l.player_id, l.expires_at
    FROM player_link l JOIN api_key k ON k.tenant_id = l.tenant_id AND k.id = l.key_id
    WHERE l.hash = its_hash AND l.revoked_at IS NULL AND (l.expires_at IS NULL OR l.expires_at > now())
$$;

-- Which of these links no longer let anybody be at the table, for those who are there.
CREATE FUNCTION player_links_over(tenants uuid[], links uuid[]) RETURNS TABLE (tenant_id uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT w.tenant_id, w.id FROM unnest(tenants, links) AS w (tenant_id, id)
    WHERE NOT EXISTS (
        SELECT FROM player_link l
        JOIN api_key k ON k.tenant_id = l.tenant_id AND k.id = l.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
        JOIN campaign c ON c.tenant_id = l.tenant_id AND c.id = l.campaign_id AND c.removed_at IS NULL
        WHERE l.tenant_id = w.tenant_id AND l.id = w.id AND l.revoked_at IS NULL AND (l.expires_at IS NULL OR l.expires_at > now()))
$$;

-- Whether the character that a token plays exists, the token's visit to the table has not been ended, and the link by which the visit began
-- still works. Stores once a minute that the link was used, and the pause that this may end.
CREATE FUNCTION token_stands(its_tenant uuid, who text, player uuid, visit uuid, link uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    IF link IS NOT NULL THEN
        UPDATE player_link l SET last_used_at = now(),
            away_since = CASE WHEN l.last_used_at < now() - interval '30 minutes' THEN l.last_used_at ELSE l.away_since END,
            back_at = CASE WHEN l.last_used_at < now() - interval '30 minutes' THEN now() ELSE l.back_at END
        WHERE l.tenant_id = its_tenant AND l.id = (
            SELECT m.id FROM player_link m WHERE m.tenant_id = its_tenant AND m.id = link
              AND (m.last_used_at IS NULL OR m.last_used_at < now() - interval '1 minute') FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN (player IS NULL OR EXISTS (
            SELECT FROM character c JOIN campaign w ON w.tenant_id = its_tenant AND w.id = c.campaign_id
            WHERE c.tenant_id = its_tenant AND c.id = player))
        AND (visit IS NULL OR NOT EXISTS (SELECT FROM ended_visit e WHERE e.tenant_id = its_tenant AND e.id = visit))
        AND (link IS NULL OR EXISTS (
            SELECT FROM player_link l WHERE l.tenant_id = its_tenant AND l.id = link AND l.revoked_at IS NULL
              AND (l.expires_at IS NULL OR l.expires_at > now())));
END $$;

-- Ends a visit to the table early. Deletes the tenant's rows for visits that are over anyway.
CREATE FUNCTION end_visit(its_tenant uuid, who text, visit uuid, over_at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    DELETE FROM ended_visit e WHERE e.tenant_id = its_tenant AND e.until < now() - interval '1 minute';
    INSERT INTO ended_visit (tenant_id, id, until) VALUES (its_tenant, visit, over_at) ON CONFLICT DO NOTHING;
    RETURN true;
END $$;
