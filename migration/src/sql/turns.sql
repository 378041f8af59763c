DROP FUNCTION turn_open
-- ;;
DROP FUNCTION session_turn_open
-- ;;
DROP FUNCTION plan_open
-- ;;
DROP FUNCTION turn_finish
-- ;;
-- Claims a turn's idempotency key, if it has one, and stores the turn. Returns false if the key was used before; then nothing is
-- written. All turns are inserted here. The function runs as the caller, so row security applies.
--
-- `new` is a turn as `NewTurn` in the server writes it:
--   {"id": "0192…", "campaign_id": "0192…", "kind": "npc", "status": "running", "entity_id": "0192…", "player_id": "0192…",
--    "action": "I knock.", "reply_mode": "tools", "on_failure": "revert", "key_id": null, "instance": 7, "lease_seconds": 20,
--    "claim": {"id": "0192…", "route": "POST /v1/npc-actions", "key": "a1", "fingerprint": "9f86…"}}
-- `claim` is null without a key; its fingerprint is hexadecimal. A session's turn also has `seen_seq`, `seen_event` and `told_as`.
CREATE FUNCTION turn_claim(its_tenant uuid, new jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF new -> 'claim' <> 'null' THEN
        INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
        SELECT its_tenant, c.id, c.key, c.route, decode(c.fingerprint, 'hex'), 'running', (new ->> 'id')::uuid
        FROM jsonb_to_record(new -> 'claim') AS c (id uuid, key text, route text, fingerprint text)
        ON CONFLICT (tenant_id, route, key) DO NOTHING;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, on_failure,
                      key_id, instance, lease_until, seen_seq, seen_event, told_as)
    SELECT its_tenant, t.id, t.campaign_id, t.kind, t.status, t.entity_id, t.player_id, t.action, t.reply_mode, t.on_failure,
           t.key_id, t.instance, now() + t.lease_seconds * interval '1 second', t.seen_seq, t.seen_event, t.told_as
    FROM jsonb_to_record(new) AS t (
        id uuid, campaign_id uuid, kind text, status text, entity_id uuid, player_id uuid, action text, reply_mode text,
        on_failure text, key_id uuid, instance bigint, lease_seconds int, seen_seq bigint, seen_event bigint, told_as text);
    RETURN true;
END $$
-- ;;
-- Begins a turn whose prompt is cached, in one round trip. Returns false if the key was used before, the campaign is gone, or the
-- prompt is out of date; then nothing is written.
--
-- The prompt is up to date if the versions of what it was built from still have the same sum: versions only rise. Example: a prompt
-- was built from `npc:…` in version 3 and `lore:…` in version 5. The sum is 8. After a change of the lore entry it is 9.
-- The versions are read after the turn has its place, because the turn may have waited for it.
--
-- The commit does not wait for the disk: if PostgreSQL crashes, a client that got no answer asks again.
CREATE FUNCTION turn_open(its_tenant uuid, who text, new jsonb, head_keys text[], head_sum bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    its_campaign uuid := new ->> 'campaign_id';
    sum_now bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM campaign c WHERE c.tenant_id = its_tenant AND c.id = its_campaign) THEN
        RETURN false;
    END IF;
    IF NOT turn_claim(its_tenant, new) THEN
        RETURN false;
    END IF;
    -- One lookup per key: a join would make PostgreSQL read every version of the campaign.
    SELECT sum((SELECT h.version FROM version_head h WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key = k))
    INTO sum_now FROM unnest(head_keys) AS k;
    IF sum_now = head_sum THEN
        RETURN true;
    END IF;
    DELETE FROM turn WHERE tenant_id = its_tenant AND id = (new ->> 'id')::uuid;
    DELETE FROM idempotency WHERE tenant_id = its_tenant AND id = (new #>> '{claim,id}')::uuid;
    RETURN false;
END $$
-- ;;
-- Begins a session's turn, and stores up to where its AI is told what happened. That counts once the turn completes. The positions
-- are read before the turn has its place, so that it is told of everything that earlier turns did. Returns no row, and writes
-- nothing, if the campaign or session is unknown or the key was used before.
CREATE FUNCTION session_turn_open(
    its_tenant uuid, who text, named_campaign uuid, campaign_slug text, only_campaign uuid, as_role text, new jsonb)
RETURNS TABLE (campaign uuid, upto_seq bigint, upto_event bigint) LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    its_session uuid := new ->> 'entity_id';
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
    IF turn_claim(its_tenant, new || jsonb_build_object(
            'campaign_id', campaign, 'seen_seq', upto_seq, 'seen_event', upto_event, 'told_as', told)) THEN
        RETURN NEXT;
    END IF;
END $$
-- ;;
-- Begins a plan in one round trip: finds the campaign, the player and the scene that the request names, stores the player's words
-- as a message, stores the turn, and claims its key. `state` is `open`, or the reason why nothing was written: `campaign`, `player`
-- or `scene` (unknown), `other_player`, `other_scene`, `new_channel` (its scene has to be created first), `known` (the key was used
-- before).
--
-- `named` is what the request names, each thing by id or by slug:
--   {"campaign_id": null, "campaign": "saltmarsh", "only_campaign": null, "player_id": null, "player": "mira", "only_player": null,
--    "scene_id": null, "scene": null, "channel": "discord:42", "is_told": true}
-- `only_campaign` and `only_player` are those that the caller's token is restricted to. `is_told` is false for a dry run, which
-- writes no message. `new` is as in `turn_claim`, without campaign, entity and player.
--
-- The message has the turn's id, so a plan that is tried again says the words once. The message is not an effect of the turn and
-- stays when the turn is reverted. The commit does not wait for the disk, as in `turn_open`.
CREATE FUNCTION plan_open(its_tenant uuid, who text, named jsonb, new jsonb)
RETURNS TABLE (state text, campaign uuid, allowed jsonb, automatic jsonb, player uuid, player_slug text, player_name text, scene uuid)
LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    its_channel text := named ->> 'channel';
    channel_of_scene text;
BEGIN
    SELECT c.id, c.settings -> 'planner_commands', c.settings -> 'automatic_actions' INTO campaign, allowed, automatic FROM campaign c
    WHERE c.tenant_id = its_tenant AND (c.id = (named ->> 'campaign_id')::uuid OR c.slug = named ->> 'campaign');
    IF campaign IS NULL OR campaign <> (named ->> 'only_campaign')::uuid THEN
        state := 'campaign'; RETURN NEXT; RETURN;
    END IF;
    SELECT p.id, p.slug, p.name INTO player, player_slug, player_name FROM character p
    WHERE p.tenant_id = its_tenant AND p.campaign_id = campaign
      AND (p.id = (named ->> 'player_id')::uuid OR p.slug = named ->> 'player');
    IF player IS NULL THEN
        state := 'player'; RETURN NEXT; RETURN;
    END IF;
    IF player <> (named ->> 'only_player')::uuid THEN
        state := 'other_player'; RETURN NEXT; RETURN;
    END IF;
    IF coalesce(named ->> 'scene_id', named ->> 'scene') IS NOT NULL THEN
        SELECT s.id, s.channel INTO scene, channel_of_scene FROM scene s
        WHERE s.tenant_id = its_tenant AND s.campaign_id = campaign
          AND (s.id = (named ->> 'scene_id')::uuid OR s.slug = named ->> 'scene');
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
    IF NOT turn_claim(its_tenant, new || jsonb_build_object('campaign_id', campaign, 'entity_id', player, 'player_id', player)) THEN
        state := 'known'; RETURN NEXT; RETURN;
    END IF;
    IF (named ->> 'is_told')::boolean THEN
        INSERT INTO message (tenant_id, id, campaign_id, scene_id, type, speaker, content, author, player_id, whisper_to, blind, turn_id)
        VALUES (its_tenant, (new ->> 'id')::uuid, campaign, scene, 'chat', jsonb_build_object('name', player_name),
                new ->> 'action', 'player', player, '[]', false, (new ->> 'id')::uuid);
    END IF;
    state := 'open'; RETURN NEXT;
END $$
-- ;;
-- Ends a turn: stores its record (byte for byte), its usage if a model was asked, its answer under its key, and its messages.
-- Returns false if the turn is no longer this server's, or is being reverted; then nothing is written.
--
-- `ended` is what `Ended` in the server writes:
--   {"campaign_id": "0192…", "kind": "npc", "instance": 7, "status": "succeeded", "answer_headers": {"status": 200},
--    "usage": {"id": "0192…", "model": "m", "llm_calls": 2, "prompt_tokens": 900, "cached_tokens": 640, "completion_tokens": 80,
--              "cost_micros": null},
--    "messages": [ as in `write_messages` ], "reply": null}
-- `reply` is what a reaction says to its player: {"id": "…", "reaction_id": "…", "player_id": "…", "entity_kind": "npc", "entity_id": "…",
-- "narrative": "…", "messages": […], "location_key": null, "reverts": false, "expires_seconds": 3600}. Without a narrative there is none.
-- Its messages are written when it is delivered. Its tables come with the next migration.
CREATE FUNCTION turn_finish(its_tenant uuid, who text, its_id uuid, its_record text, its_answer bytea, ended jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
    its_campaign uuid := ended ->> 'campaign_id';
BEGIN
    UPDATE turn SET status = ended ->> 'status', record = its_record::json, finished_at = now()
    WHERE tenant_id = its_tenant AND id = its_id AND instance = (ended ->> 'instance')::bigint AND status = 'running'
      AND NOT cancel_requested AND revert_as IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF its_answer IS NOT NULL THEN
        UPDATE idempotency SET state = 'done', status = 200, headers = ended -> 'answer_headers', body = its_answer
        WHERE tenant_id = its_tenant AND turn_id = its_id;
    END IF;
    INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens,
                             completion_tokens, cost_micros)
    SELECT its_tenant, u.id, its_campaign, ended ->> 'kind', u.model, u.llm_calls, u.prompt_tokens, u.cached_tokens,
           u.completion_tokens, u.cost_micros
    FROM jsonb_to_record(ended -> 'usage') AS u (
        id uuid, model text, llm_calls int, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, cost_micros bigint)
    WHERE u.llm_calls > 0;
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
REVOKE ALL ON FUNCTION turn_claim, turn_open, session_turn_open, plan_open, turn_finish FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION turn_claim, turn_open, session_turn_open, plan_open, turn_finish TO tavernkeep_app
