-- The usage ledger, and the models that it is about.

-- `api_key` and `headers` are encrypted, because both can hold a provider's secrets.
CREATE TABLE model_profile (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    settings jsonb NOT NULL,
    api_key bytea,
    headers bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT model_profile_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
);
CALL make_tenant_table('model_profile', 'system');
CREATE UNIQUE INDEX model_profile_slug_key ON model_profile (tenant_id, slug);

CREATE TABLE usage_entry (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid,
    kind text NOT NULL,
    model text NOT NULL,
    llm_calls int NOT NULL,
    prompt_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cost_micros bigint,
    profile text,
    task text,
    turn_id uuid,
    player_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CALL make_tenant_table('usage_entry', 'system');
CREATE INDEX usage_entry_time ON usage_entry (tenant_id, created_at);

-- Adds rows to the usage ledger. `used` is the JSON that `turns/store/used.rs` writes, one element for each profile, task and model:
--   [{"id": "0192…", "profile": "quick", "task": "npc", "model": "m", "llm_calls": 2, "prompt_tokens": 900, "cached_tokens": 640,
--     "completion_tokens": 80, "cost_micros": null}]
-- Adding the same rows twice adds them once.
--
-- ON CONFLICT always finds a row that is there by its key. PostgreSQL could plan a subquery as a scan of the tenant's whole ledger while that
-- is small, and keep the plan as the ledger grows.
CREATE FUNCTION count_usage(its_tenant uuid, its_campaign uuid, its_kind text, its_turn uuid, its_player uuid, used jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, turn_id, player_id, profile, task, model, llm_calls, prompt_tokens,
                             cached_tokens, completion_tokens, cost_micros)
    SELECT its_tenant, u.id, its_campaign, its_kind, its_turn, its_player, u.profile, u.task, u.model, u.llm_calls, u.prompt_tokens,
           u.cached_tokens, u.completion_tokens, u.cost_micros
    FROM jsonb_to_recordset(used) AS u (
        id uuid, profile text, task text, model text, llm_calls int, prompt_tokens bigint, cached_tokens bigint,
        completion_tokens bigint, cost_micros bigint)
    WHERE u.llm_calls > 0
    ON CONFLICT (tenant_id, id) DO NOTHING;
END $$;

-- Deletes a portion of the old rows of the ledger, and returns how many.
CREATE FUNCTION prune_usage(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT u.tenant_id, u.id FROM tenant t JOIN usage_entry u ON u.tenant_id = t.tenant_id AND u.created_at < now() - older_than
        LIMIT rows_max)
    DELETE FROM usage_entry u USING old WHERE u.tenant_id = old.tenant_id AND u.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

CREATE TRIGGER a_touch BEFORE UPDATE ON model_profile FOR EACH ROW
    EXECUTE FUNCTION touch_row();
