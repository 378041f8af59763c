-- What models were used for, by whom, and which NPC or owner is answered for by a model of its own.
ALTER TABLE usage_entry ADD COLUMN profile text, ADD COLUMN task text, ADD COLUMN turn_id uuid, ADD COLUMN player_id uuid
-- ;;
ALTER TABLE npc ADD COLUMN model text
-- ;;
ALTER TABLE owner ADD COLUMN model text
-- ;;
CREATE INDEX npc_model ON npc (tenant_id, model) WHERE model IS NOT NULL
-- ;;
CREATE INDEX owner_model ON owner (tenant_id, model) WHERE model IS NOT NULL
-- ;;
-- Adds rows to the usage ledger. `used` is the JSON that `turns/store/used.rs` writes, one element for each profile, task and model:
--   [{"id": "0192…", "profile": "quick", "task": "npc", "model": "m", "llm_calls": 2, "prompt_tokens": 900, "cached_tokens": 640,
--     "completion_tokens": 80, "cost_micros": null}]
-- Adding the same rows twice adds them once.
CREATE FUNCTION count_usage(its_tenant uuid, its_campaign uuid, its_kind text, its_turn uuid, its_player uuid, used jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, turn_id, player_id, profile, task, model, llm_calls, prompt_tokens,
                             cached_tokens, completion_tokens, cost_micros)
    SELECT its_tenant, u.id, its_campaign, its_kind, its_turn, its_player, u.profile, u.task, u.model, u.llm_calls, u.prompt_tokens,
           u.cached_tokens, u.completion_tokens, u.cost_micros
    FROM jsonb_to_recordset(used) AS u (
        id uuid, profile text, task text, model text, llm_calls int, prompt_tokens bigint, cached_tokens bigint,
        completion_tokens bigint, cost_micros bigint)
    WHERE u.llm_calls > 0 AND NOT EXISTS (SELECT FROM usage_entry e WHERE e.tenant_id = its_tenant AND e.id = u.id);
END $$
-- ;;
REVOKE ALL ON FUNCTION count_usage FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION count_usage TO tavernkeep_app
-- ;;
-- As before, but `usage` is what `count_usage` takes. A server of the previous version still sends one object.
CREATE OR REPLACE FUNCTION turn_finish(its_tenant uuid, who text, its_id uuid, its_record text, its_answer bytea, ended jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
    its_campaign uuid := ended ->> 'campaign_id';
    its_player uuid;
BEGIN
    UPDATE turn SET status = ended ->> 'status', record = its_record::json, finished_at = now()
    WHERE tenant_id = its_tenant AND id = its_id AND instance = (ended ->> 'instance')::bigint AND status = 'running'
      AND NOT cancel_requested AND revert_as IS NULL
    RETURNING player_id INTO its_player;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF its_answer IS NOT NULL THEN
        UPDATE idempotency SET state = 'done', status = 200, headers = ended -> 'answer_headers', body = its_answer
        WHERE tenant_id = its_tenant AND turn_id = its_id;
    END IF;
    PERFORM count_usage(its_tenant, its_campaign, ended ->> 'kind', its_id, its_player,
        CASE jsonb_typeof(ended -> 'usage') WHEN 'array' THEN ended -> 'usage' ELSE jsonb_build_array(ended -> 'usage') END);
    PERFORM write_messages(its_tenant, its_campaign, ended -> 'messages');
    IF jsonb_typeof(ended -> 'reply') = 'object' THEN
        UPDATE reaction SET state = 'done', finished_at = now(), lease_until = NULL, error = NULL, turn_id = its_id
        WHERE tenant_id = its_tenant AND id = (ended #>> '{reply,reaction_id}')::uuid;
        PERFORM look_again(its_tenant, (ended #>> '{reply,entity_id}')::uuid, (ended #>> '{reply,player_id}')::uuid);
        INSERT INTO reply (tenant_id, id, campaign_id, reaction_id, player_id, entity_kind, entity_id, turn_id, narrative, messages,
                           location_key, reverts, state, expires_at)
        SELECT its_tenant, p.id, its_campaign, p.reaction_id, p.player_id, p.entity_kind, p.entity_id, its_id, p.narrative, p.messages,
               p.location_key, p.reverts, 'pending', now() + p.expires_seconds * interval '1 second'
        FROM jsonb_to_record(ended -> 'reply') AS p (
            id uuid, reaction_id uuid, player_id uuid, entity_kind text, entity_id uuid, narrative text, messages jsonb,
            location_key text, reverts boolean, expires_seconds int)
        WHERE p.narrative <> '' AND EXISTS (SELECT FROM character c WHERE c.tenant_id = its_tenant AND c.id = p.player_id);
    END IF;
    RETURN true;
END $$
-- ;;
-- As before, with `model`.
CREATE OR REPLACE FUNCTION spawn_npcs(its_tenant uuid, its_campaign uuid, template jsonb, candidates text[], how_many int)
RETURNS TABLE (npc_id uuid, npc_slug text) LANGUAGE plpgsql AS $$
DECLARE
    first_free text := free_slug(its_tenant, its_campaign, 'actor_slug', candidates);
    free text[] := ARRAY(
        SELECT c FROM unnest(candidates) WITH ORDINALITY AS wanted (c, n) WHERE NOT EXISTS (
            SELECT FROM actor_slug a WHERE a.tenant_id = its_tenant AND a.campaign_id = its_campaign AND a.slug = c)
        ORDER BY n LIMIT how_many);
BEGIN
    IF first_free IS NULL OR cardinality(free) < how_many THEN
        RETURN;
    END IF;
    -- Without `location_key`, which is generated.
    RETURN QUERY INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, race, profession, location, faction, owner_ids,
        available_tools, stats, conditions, effects, disposition, inventory, reaction_threshold, model, created_at, version, updated_at, extensions, external_ref)
    SELECT r.tenant_id, r.id, r.campaign_id, r.slug, r.name, r.description, r.personality_prompt, r.race, r.profession, r.location, r.faction, r.owner_ids,
        r.available_tools, r.stats, r.conditions, r.effects, r.disposition, r.inventory, r.reaction_threshold, r.model, r.created_at, r.version, r.updated_at, r.extensions, r.external_ref
    FROM unnest(free) AS s, jsonb_populate_record(NULL::npc, template || jsonb_build_object(
        'tenant_id', its_tenant, 'campaign_id', its_campaign, 'id', uuid7(), 'slug', s, 'version', 1, 'created_at', now(),
        'updated_at', now(), 'external_ref', NULL)) AS r
    RETURNING npc.id, npc.slug;
END $$
-- ;;
-- Version heads. A change of `model` may change the reply mode, and the prompt depends on it.
DROP TRIGGER c_heads ON owner
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON owner FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,monitored_aspect,associated_id,available_tools,model',
    'mood', 'id', 'resources')
-- ;;
DROP TRIGGER c_heads ON npc
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,race,profession,location,faction,owner_ids,available_tools,model',
    'mood', 'id', 'disposition,stats', 'pack', 'id', 'inventory')
