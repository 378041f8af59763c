-- What an operator switches while servers run (`tavernkeep planner off`). It is no tenant's: the server's role reads it through
-- auth_key alone, so every replica knows it as soon as it looks a credential up again.
CREATE TABLE operator_switch (name text PRIMARY KEY, enabled boolean NOT NULL, changed_at timestamptz NOT NULL DEFAULT now())
-- ;;
DROP FUNCTION auth_key(text)
-- ;;
-- Sign-in: what a key's prefix stands for, and which features the operator switched off. The caller proves the key by its hash.
CREATE FUNCTION auth_key(key_prefix text) RETURNS TABLE (
    key_id uuid, tenant_id uuid, hash bytea, scopes text[], expires_at timestamptz, revoked_at timestamptz,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE api_key k SET last_used_at = now()
    WHERE k.prefix = key_prefix AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
      AND k.id = (SELECT l.id FROM api_key l WHERE l.prefix = key_prefix FOR UPDATE SKIP LOCKED);
    RETURN QUERY SELECT k.id, k.tenant_id, k.hash, k.scopes, k.expires_at, k.revoked_at,
                        t.limits, t.settings, t.version, t.origins, t.llm_api_key,
                        ARRAY(SELECT s.name FROM operator_switch s WHERE NOT s.enabled)
    FROM api_key k JOIN tenant t ON t.tenant_id = k.tenant_id WHERE k.prefix = key_prefix;
END $$
-- ;;
-- Begins a plan in one round trip: whom and what the request names, the player's words in the history, the turn, and the claim of
-- its idempotency key. It runs as the caller, bound by row security like any statement. `state` says what came of it: `open`, or
-- why nothing was written: `campaign`, `player`, `scene` (no such), `other_player`, `other_scene`, `new_channel` (its scene is to
-- be made first), `known` (the key was used before). The words have the turn's id, so a plan that is tried again says them once;
-- they are no effect of the turn and stay when it is reverted. What is written may be lost if PostgreSQL itself crashes before
-- the plan is answered, so the commit does not wait for the disk.
CREATE FUNCTION plan_open(
    its_tenant uuid, who text, campaign_of uuid, campaign_named text, only_campaign uuid,
    player_of uuid, player_named text, only_player uuid, scene_of uuid, scene_named text, its_channel text,
    its_id uuid, said text, is_told boolean, its_mode text, its_key_id uuid, its_instance bigint, lease_seconds int,
    claim_id uuid, claim_route text, claim_key text, claim_print bytea)
RETURNS TABLE (state text, campaign uuid, allowed jsonb, player uuid, player_slug text, player_name text, scene uuid)
LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    channel_of_scene text;
BEGIN
    SELECT c.id, c.settings -> 'planner_commands' INTO campaign, allowed FROM campaign c
    WHERE c.tenant_id = its_tenant AND (c.id = campaign_of OR c.slug = campaign_named);
    IF campaign IS NULL OR campaign <> only_campaign THEN
        state := 'campaign'; RETURN NEXT; RETURN;
    END IF;
    SELECT p.id, p.slug, p.name INTO player, player_slug, player_name FROM character p
    WHERE p.tenant_id = its_tenant AND p.campaign_id = campaign AND (p.id = player_of OR p.slug = player_named);
    IF player IS NULL THEN
        state := 'player'; RETURN NEXT; RETURN;
    END IF;
    IF player <> only_player THEN
        state := 'other_player'; RETURN NEXT; RETURN;
    END IF;
    IF scene_of IS NOT NULL OR scene_named IS NOT NULL THEN
        SELECT s.id, s.channel INTO scene, channel_of_scene FROM scene s
        WHERE s.tenant_id = its_tenant AND s.campaign_id = campaign AND (s.id = scene_of OR s.slug = scene_named);
        IF scene IS NULL THEN
            state := 'scene'; RETURN NEXT; RETURN;
        ELSIF its_channel IS NOT NULL AND its_channel IS DISTINCT FROM channel_of_scene THEN
            state := 'other_scene'; RETURN NEXT; RETURN;
        END IF;
    ELSIF its_channel IS NOT NULL THEN
        SELECT s.id INTO scene FROM scene s
        WHERE s.tenant_id = its_tenant AND s.campaign_id = campaign AND s.channel = its_channel;
        IF scene IS NULL THEN
            state := 'new_channel'; RETURN NEXT; RETURN;
        END IF;
    END IF;
    IF claim_key IS NOT NULL THEN
        INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
        VALUES (its_tenant, claim_id, claim_key, claim_route, claim_print, 'running', its_id)
        ON CONFLICT (tenant_id, route, key) DO NOTHING;
        IF NOT FOUND THEN
            state := 'known'; RETURN NEXT; RETURN;
        END IF;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, player_id, action, reply_mode, key_id, instance, lease_until)
    VALUES (its_tenant, its_id, campaign, 'planner', 'running', player, said, its_mode, its_key_id, its_instance,
            now() + lease_seconds * interval '1 second');
    IF is_told THEN
        INSERT INTO message (tenant_id, id, campaign_id, scene_id, type, speaker, content, author, player_id, whisper_to, blind, turn_id)
        VALUES (its_tenant, its_id, campaign, scene, 'chat', jsonb_build_object('name', player_name), said, 'player', player,
                '[]', false, its_id);
    END IF;
    state := 'open'; RETURN NEXT;
END $$
-- ;;
-- Writes messages in their order; one whose `external_ref` the campaign has already is left out, and one of a scene that is gone
-- stands nowhere.
CREATE FUNCTION say(its_tenant uuid, its_campaign uuid, messages jsonb) RETURNS SETOF uuid LANGUAGE sql AS $$
    INSERT INTO message (tenant_id, campaign_id, id, session_id, scene_id, type, speaker, content, flavor, roll, author, player_id,
        entity_id, whisper_to, blind, turn_id, prompt_text, tokens, window_start, extensions, external_ref)
    SELECT its_tenant, its_campaign, id, session_id, (SELECT s.id FROM scene s WHERE s.tenant_id = its_tenant AND s.id = m.scene_id),
        type, speaker, content, flavor, roll, author, player_id, entity_id, whisper_to, blind, turn_id, prompt_text, tokens,
        window_start, extensions, external_ref
    FROM jsonb_populate_recordset(NULL::message, messages) m
    ON CONFLICT (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL DO NOTHING RETURNING id
$$
-- ;;
-- Ends a turn within the transaction that did its work: how it ended, its usage if a model was asked, its answer under its key,
-- and what is said of it. False if the turn is no longer this server's.
CREATE FUNCTION turn_close(
    its_tenant uuid, its_campaign uuid, its_id uuid, its_kind text, its_instance bigint, its_status text, its_record text,
    usage_id uuid, its_model text, calls int, prompt bigint, cached bigint, completion bigint, cost bigint,
    answer_headers jsonb, answer bytea, messages jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE turn SET status = its_status, record = its_record::json, finished_at = now()
    WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance AND status = 'running' AND NOT cancel_requested;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF answer IS NOT NULL THEN
        UPDATE idempotency SET state = 'done', status = 200, headers = answer_headers, body = answer
        WHERE tenant_id = its_tenant AND turn_id = its_id;
    END IF;
    IF calls > 0 THEN
        INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens,
                                 completion_tokens, cost_micros)
        VALUES (its_tenant, usage_id, its_campaign, its_kind, its_model, calls, prompt, cached, completion, cost);
    END IF;
    IF messages IS NOT NULL THEN
        PERFORM say(its_tenant, its_campaign, messages);
    END IF;
    RETURN true;
END $$
-- ;;
REVOKE ALL ON FUNCTION auth_key, plan_open, say, turn_close FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION auth_key, plan_open, say, turn_close TO tavernkeep_app
