-- What a session's AI is for a turn, and for whom if it plays a character.
CREATE FUNCTION told_as(role text, player uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE role WHEN 'player' THEN 'player:' || coalesce(player::text, '') ELSE role END
$$
-- ;;
-- What the turn of a session's AI is told from, as it is at this moment: the session, its place in the feed, the campaign (its texts
-- only if it is not the version that is held), the version of its conversation, and those of the lore that is held. No row for
-- no session. Statement by statement, each an index lookup, and each with a snapshot of its own: after a turn took its place
-- nothing older is read.
CREATE FUNCTION session_facts(its_tenant uuid, its_campaign uuid, its_session uuid, as_role text, held_campaign bigint,
    held_heads text[])
RETURNS TABLE (
    client_id text, role text, told_as text, dice text, player_id uuid, scene_id uuid, player_name text, race text, profession text, place text,
    from_seq bigint, events bigint, seq bigint, pruned bigint, seen_seq bigint, seen_event bigint,
    campaign_version bigint, campaign_name text, game_system text, game_time text, description text, settings jsonb,
    talk bigint, heads bigint[], has_fights boolean, has_news boolean, has_played boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    its_scene uuid;
    its_player uuid;
BEGIN
    SELECT s.client_id, coalesce(as_role, s.role), told_as(coalesce(as_role, s.role), s.player_id), s.dice, s.player_id, s.scene_id, s.player_id, s.scene_id, st.from_seq, st.events,
           coalesce(nullif(st.world_state #>> '{active_scene,location}', ''), nullif(st.world_state #>> '{active_scene,name}', '')),
           st.combat <> '[]'
    INTO client_id, role, told_as, dice, player_id, scene_id, its_player, its_scene, from_seq, events, place, has_fights
    FROM session s JOIN session_state st ON st.tenant_id = its_tenant AND st.session_id = s.id
    WHERE s.tenant_id = its_tenant AND s.campaign_id = its_campaign AND s.id = its_session;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF place IS NULL THEN
        SELECT coalesce(nullif(c.location, ''), c.name) INTO place FROM scene c
        WHERE c.tenant_id = its_tenant AND c.campaign_id = its_campaign AND (c.id = its_scene OR c.active AND its_scene IS NULL)
        ORDER BY c.updated_at DESC, c.id LIMIT 1;
    END IF;
    IF its_player IS NOT NULL THEN
        SELECT c.name, c.race, c.profession INTO player_name, race, profession FROM character c
        WHERE c.tenant_id = its_tenant AND c.id = its_player;
    END IF;
    SELECT t.seen_seq, t.seen_event INTO seen_seq, seen_event FROM turn t
    WHERE t.tenant_id = its_tenant AND t.entity_id = its_session AND t.kind = 'gm' AND t.status IN ('succeeded', 'limit_reached')
      AND t.told_as = session_facts.told_as AND t.undone_at IS NULL AND t.seen_seq IS NOT NULL ORDER BY t.seen_seq DESC, t.seen_event DESC LIMIT 1;
    SELECT c.version, c.name, c.game_system, c.game_time, c.description, c.settings,
           coalesce(f.seq, 0), coalesce(f.pruned_seq, 0), coalesce(t.version, 0), has_fights OR EXISTS (
               SELECT 1 FROM encounter e WHERE e.tenant_id = its_tenant AND e.campaign_id = its_campaign AND e.status = 'active')
    INTO campaign_version, campaign_name, game_system, game_time, description, settings, seq, pruned, talk, has_fights
    FROM campaign c
    LEFT JOIN feed_head f ON f.tenant_id = its_tenant AND f.campaign_id = its_campaign
    LEFT JOIN version_head t ON t.tenant_id = its_tenant AND t.campaign_id = its_campaign
        AND t.key = 'talk:' || its_session || ':00000000-0000-0000-0000-000000000000'
    WHERE c.tenant_id = its_tenant AND c.id = its_campaign;
    IF campaign_version = held_campaign THEN
        campaign_name := NULL;
        description := NULL;
        settings := NULL;
    END IF;
    heads := lore_heads(its_tenant, its_campaign, held_heads);
    has_news := false;
    IF seen_seq IS NULL THEN
        has_played := EXISTS (
            SELECT 1 FROM turn t WHERE t.tenant_id = its_tenant AND t.entity_id = its_session AND t.kind = 'gm'
              AND t.status IN ('succeeded', 'limit_reached') AND t.undone_at IS NULL AND t.seen_seq IS NOT NULL);
    ELSE
        has_played := true;
        -- What its own turns did is no news.
        has_news := EXISTS (
            SELECT 1 FROM journal j WHERE j.tenant_id = its_tenant AND j.campaign_id = its_campaign AND j.seq > seen_seq
              AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.tenant_id = its_tenant AND t.id = j.turn_id
                              AND t.entity_id = its_session AND t.kind = 'gm' AND t.told_as = session_facts.told_as));
    END IF;
    RETURN NEXT;
END $$
-- ;;
-- The versions of heads of lore, in their order. `lore::` stands for all lore of the campaign: heads only rise, and so does their sum.
-- Planned once: the planner would else try anew at each call how many keys there are, which costs more than all the rest.
CREATE FUNCTION lore_heads(its_tenant uuid, its_campaign uuid, keys text[]) RETURNS bigint[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        SELECT CASE WHEN k = 'lore::' THEN (
            SELECT coalesce(sum(h.version), 0)::bigint FROM version_head h
            WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key >= 'lore:' AND h.key < 'lore;')
        ELSE coalesce((SELECT h.version FROM version_head h
            WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key = k), 0) END
        FROM unnest(keys) WITH ORDINALITY AS named (k, n) ORDER BY n);
END $$
-- ;;
-- Writes that a session's turn runs, and up to where it is told what happened; that counts once the turn completes. Where things
-- stand is read before the turn takes its place, so that nothing of a turn before it is passed over. No row, and nothing
-- written, for an unknown campaign or session, or a key that is known.
CREATE FUNCTION session_turn_open(
    its_tenant uuid, who text, named_campaign uuid, campaign_slug text, only_campaign uuid, its_session uuid,
    as_role text, its_id uuid, its_action text, its_mode text, its_on_failure text, its_key_id uuid, its_instance bigint, lease_seconds int,
    claim_id uuid, claim_route text, claim_key text, claim_print bytea)
RETURNS TABLE (campaign uuid, upto_seq bigint, upto_event bigint) LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    told text;
BEGIN
    SELECT c.id, st.events, told_as(coalesce(as_role, s.role), s.player_id), coalesce(h.seq, 0)
    INTO campaign, upto_event, told, upto_seq
    FROM session_state st
    JOIN session s ON s.tenant_id = its_tenant AND s.id = its_session
    JOIN campaign c ON c.tenant_id = its_tenant AND c.id = st.campaign_id
    LEFT JOIN feed_head h ON h.tenant_id = its_tenant AND h.campaign_id = st.campaign_id
    WHERE st.tenant_id = its_tenant AND st.session_id = its_session AND (c.id = named_campaign OR c.slug = campaign_slug)
      AND (only_campaign IS NULL OR c.id = only_campaign);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF claim_key IS NOT NULL THEN
        INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
        VALUES (its_tenant, claim_id, claim_key, claim_route, claim_print, 'running', its_id)
        ON CONFLICT (tenant_id, route, key) DO NOTHING;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, action, reply_mode, on_failure, key_id, instance,
                      lease_until, seen_seq, seen_event, told_as)
    VALUES (its_tenant, its_id, campaign, 'gm', 'running', its_session, its_action, its_mode, its_on_failure, its_key_id, its_instance,
            now() + lease_seconds * interval '1 second', upto_seq, upto_event, told);
    RETURN NEXT;
END $$
-- ;;
-- Writes messages in their order; one whose `external_ref` the campaign has already is left out, and a scene that is gone is none.
-- Returns the ids of those that were written.
CREATE FUNCTION write_messages(its_tenant uuid, its_campaign uuid, messages jsonb) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := '{}';
    m jsonb;
    one uuid;
BEGIN
    FOR i IN 0 .. jsonb_array_length(messages) - 1 LOOP
        m := messages -> i;
        INSERT INTO message (tenant_id, campaign_id, id, session_id, scene_id, type, speaker, content, flavor, roll, author,
            player_id, entity_id, whisper_to, blind, turn_id, prompt_text, tokens, window_start, told_as, extensions, external_ref)
        VALUES (its_tenant, its_campaign, (m ->> 'id')::uuid, (m ->> 'session_id')::uuid,
            (SELECT s.id FROM scene s WHERE s.tenant_id = its_tenant AND s.id = (m ->> 'scene_id')::uuid), m ->> 'type',
            m -> 'speaker', m ->> 'content', m ->> 'flavor', nullif(m -> 'roll', 'null'), m ->> 'author', (m ->> 'player_id')::uuid,
            (m ->> 'entity_id')::uuid, m -> 'whisper_to', (m ->> 'blind')::boolean, (m ->> 'turn_id')::uuid, m ->> 'prompt_text',
            (m ->> 'tokens')::int, (m ->> 'window_start')::uuid, m ->> 'told_as', m -> 'extensions', m ->> 'external_ref')
        ON CONFLICT (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL DO NOTHING RETURNING id INTO one;
        IF FOUND THEN
            ids := ids || one;
        END IF;
    END LOOP;
    RETURN ids;
END $$
