-- What an operator switches while servers run (`tavernkeep planner off`). It is no tenant's: the server's role reads it through
-- auth_key alone, so every replica knows it as soon as it looks a credential up again.
CREATE TABLE operator_switch (name text PRIMARY KEY, enabled boolean NOT NULL, changed_at timestamptz NOT NULL DEFAULT now())
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
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, key_id, instance,
                      lease_until)
    VALUES (its_tenant, its_id, campaign, 'planner', 'running', player, player, said, its_mode, its_key_id, its_instance,
            now() + lease_seconds * interval '1 second');
    IF is_told THEN
        INSERT INTO message (tenant_id, id, campaign_id, scene_id, type, speaker, content, author, player_id, whisper_to, blind, turn_id)
        VALUES (its_tenant, its_id, campaign, scene, 'chat', jsonb_build_object('name', player_name), said, 'player', player,
                '[]', false, its_id);
    END IF;
    state := 'open'; RETURN NEXT;
END $$
-- ;;
REVOKE ALL ON FUNCTION plan_open FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION plan_open TO tavernkeep_app
