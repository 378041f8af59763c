-- As before, but the check for a row that is already there always uses the key. As a subquery, PostgreSQL could plan it while the ledger
-- was small as a scan of the tenant's whole ledger, and keep that plan as the ledger grows.
CREATE OR REPLACE FUNCTION count_usage(its_tenant uuid, its_campaign uuid, its_kind text, its_turn uuid, its_player uuid, used jsonb)
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
END $$
