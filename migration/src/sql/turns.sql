-- Turns: how one begins, goes on and ends, and its alternatives.

CREATE TABLE turn (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    entity_id uuid,
    player_id uuid,
    action text,
    -- What brought the turn about: `player`, `reaction`, `prayer` or `greeting`.
    trigger text NOT NULL DEFAULT 'player',
    on_failure text NOT NULL DEFAULT 'revert',
    reply_mode text NOT NULL DEFAULT 'native',
    record json,
    error jsonb,
    revert_conflicts jsonb,
    key_id uuid,
    instance bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    finished_at timestamptz,
    undone_at timestamptz,
    parent_turn_id uuid,
    cancel_requested boolean NOT NULL DEFAULT false,
    -- A player asked for it: nothing more begins, but what the turn has done stays, and it may still end with it.
    stop_requested boolean NOT NULL DEFAULT false,
    reverted_through bigint NOT NULL DEFAULT 0,
    runs_before int NOT NULL DEFAULT 0,
    -- What a session's AI was told reaches up to `seen_seq` in the campaign's feed and `seen_event` in the session's events. An AI in
    -- another role, for this turn or from it on, has another conversation and other positions: those of `told_as`.
    seen_seq bigint,
    seen_event bigint,
    told_as text,
    redacted_at timestamptz,
    -- What becomes of the turn when it is reverted: `failed`, `cancelled` or `undone`. Entries below `revert_next` are still to be reverted; a
    -- revert without it has not begun. `revert_stuck` counts the failures that are due to a row, not to the moment.
    revert_as text,
    revert_since timestamptz,
    revert_next bigint,
    revert_total int,
    revert_done int NOT NULL DEFAULT 0,
    revert_tries int NOT NULL DEFAULT 0,
    revert_stuck int NOT NULL DEFAULT 0,
    revert_try_at timestamptz,
    revert_error text,
    revert_conflicts_total int NOT NULL DEFAULT 0,
    -- Turns with the same `parent_turn_id`, and that turn itself, are alternatives of one answer. The effects and messages of the chosen one
    -- are in the world; those of the others are reverted and can be applied again. `awaits` is the attempt that may replace this turn.
    chosen boolean NOT NULL DEFAULT true,
    awaits uuid,
    awaits_until timestamptz,
    edited_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT turn_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('turn', 'system');
CREATE INDEX turn_awaits ON turn (tenant_id, awaits_until) WHERE awaits IS NOT NULL;
CREATE INDEX turn_list ON turn (tenant_id, campaign_id, id);
CREATE INDEX turn_parent ON turn (tenant_id, parent_turn_id) WHERE parent_turn_id IS NOT NULL;
CREATE INDEX turn_seen ON turn (tenant_id, entity_id, told_as, seen_seq DESC, seen_event DESC) WHERE kind = 'gm';
CREATE INDEX turn_under_way ON turn (tenant_id, entity_id) WHERE (status = 'running') OR (status = 'queued');
CREATE INDEX turn_undoing ON turn (tenant_id, id) WHERE revert_as = 'undone';
CREATE UNIQUE INDEX turn_one_at_a_time ON turn (tenant_id, entity_id, player_id) WHERE (status = 'running') AND (kind <> 'planner');
CREATE UNIQUE INDEX turn_one_at_a_time_in_session ON turn (tenant_id, entity_id) WHERE (status = 'running') AND (kind = 'gm');

-- The events of a turn that runs, for clients that follow it.
CREATE TABLE turn_event (
    tenant_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    seq int NOT NULL,
    name text NOT NULL,
    data text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, turn_id, seq),
    CONSTRAINT turn_event_turn_id_fkey FOREIGN KEY (tenant_id, turn_id) REFERENCES turn (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('turn_event', 'system');


-- Takes `created_at` from the turn's id, a UUIDv7 with the time of the request. So an answer says the same time as the row without reading it.
CREATE FUNCTION turn_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.created_at := timestamptz 'epoch'
        + ('x' || left(replace(NEW.id::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond';
    RETURN NEW;
END $$;

-- Claims a turn's idempotency key, if it has one, and stores the turn. Returns false if the key was used before; then nothing is
-- written. All turns are inserted here. The function runs as the caller, so row security applies.
--
-- `new` is a turn as `NewTurnRow` in the server writes it:
--   {"id": "0192…", "campaign_id": "0192…", "kind": "npc", "status": "running", "entity_id": "0192…", "player_id": "0192…",
--    "action": "I knock.", "reply_mode": "native", "on_failure": "revert", "key_id": null, "instance": 7, "lease_seconds": 20,
--    "claim": {"id": "0192…", "route": "POST /v1/npc-actions", "key": "a1", "fingerprint": "9f86…"}}
-- `trigger` is `player` if it is left out. `claim` is null without a key; its fingerprint is hexadecimal. Another attempt at an answer has `parent_turn_id`. A turn that is stored
-- after its end has `record`. For a session's turn, `turn_begin` adds `seen_seq`, `seen_event` and `told_as`.
CREATE FUNCTION turn_claim(its_tenant uuid, new jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF new -> 'claim' <> 'null' AND NOT claim_key(its_tenant, new -> 'claim', (new ->> 'id')::uuid) THEN
        RETURN false;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, trigger, reply_mode, on_failure, key_id, instance,
                      lease_until, seen_seq, seen_event, told_as, parent_turn_id, record, finished_at)
    SELECT its_tenant, t.id, t.campaign_id, t.kind, t.status, t.entity_id, t.player_id, t.action, coalesce(t.trigger, 'player'), t.reply_mode, t.on_failure, t.key_id,
           t.instance, now() + t.lease_seconds * interval '1 second', t.seen_seq, t.seen_event, t.told_as, t.parent_turn_id,
           t.record::json, CASE WHEN t.record IS NOT NULL THEN now() END
    FROM jsonb_to_record(new) AS t (
        id uuid, campaign_id uuid, kind text, status text, entity_id uuid, player_id uuid, action text, trigger text, reply_mode text,
        on_failure text, key_id uuid, instance bigint, lease_seconds int, seen_seq bigint, seen_event bigint, told_as text,
        parent_turn_id uuid, record text);
    RETURN true;
END $$;

-- Begins a turn: one round trip if it is the whole transaction. Returns a row if the turn was stored. Returns none, and writes
-- nothing, if the key was used before, the campaign or the session is unknown, or the server has to read again what it
-- read for the turn.
--
-- `new` is as in `turn_claim`. These members are optional:
--   "is_lazy": true                     the commit does not wait for the disk. If PostgreSQL crashes, a client that got no answer asks again.
--   "campaign_slug": "saltmarsh"        the slug that the campaign must have
--   "heads": ["entity:0192…", "lore:…"] the version heads of what the server read
--   "heads_sum": 8                      the sum of their versions at that time. Versions only rise, so the same sum means that nothing has
--                                       changed.
--   "messages": [ as in `write_messages` ]  what was said. It is no effect of the turn, and stays if the turn is reverted.
--   "session": {"role": "gm"}           stores up to where the session's AI is told what happened, for this role or the session's own.
--                                       That counts once the turn completes. The campaign is the session's; a `campaign_id` must agree.
-- The row that is returned has the campaign and these positions.
--
-- The positions are read before the turn has its place: what happens while it waits is told in the next turn. The versions are read after
-- it has its place, because what happens while it waits can change what was read.
CREATE FUNCTION turn_begin(its_tenant uuid, who text, new jsonb) RETURNS TABLE (campaign uuid, told_seq bigint, told_event bigint)
LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || CASE WHEN new ->> 'is_lazy' = 'true' THEN set_config('synchronous_commit', 'off', true) ELSE '' END;
    role_told text;
    heads_sum bigint;
BEGIN
    campaign := new ->> 'campaign_id';
    IF new ? 'session' THEN
        SELECT st.campaign_id, coalesce(h.seq, 0), st.events, told_as(coalesce(new #>> '{session,role}', s.role), s.player_id)
        INTO campaign, told_seq, told_event, role_told
        FROM session_state st
        JOIN session s ON s.tenant_id = its_tenant AND s.id = st.session_id
        LEFT JOIN feed_head h ON h.tenant_id = its_tenant AND h.campaign_id = st.campaign_id
        WHERE st.tenant_id = its_tenant AND st.session_id = (new ->> 'entity_id')::uuid
          AND st.campaign_id = coalesce(campaign, st.campaign_id);
        new := new || jsonb_build_object('campaign_id', campaign, 'seen_seq', told_seq, 'seen_event', told_event, 'told_as', role_told);
    END IF;
    IF NOT EXISTS (SELECT FROM campaign c WHERE c.tenant_id = its_tenant AND c.id = campaign
                   AND c.slug = coalesce(new ->> 'campaign_slug', c.slug)
                   AND NOT (new ? 'session' AND all_ai_paused(c.settings))) THEN
        RETURN;
    END IF;
    IF NOT turn_claim(its_tenant, new) THEN
        RETURN;
    END IF;
    IF new ? 'heads' THEN
        -- One lookup per key: a join would make PostgreSQL read every version of the campaign.
        SELECT coalesce(sum((SELECT h.version FROM version_head h
            WHERE h.tenant_id = its_tenant AND h.campaign_id = campaign AND h.key = k)), 0)
        INTO heads_sum FROM jsonb_array_elements_text(new -> 'heads') AS k;
        IF heads_sum IS DISTINCT FROM (new ->> 'heads_sum')::bigint THEN
            DELETE FROM turn WHERE tenant_id = its_tenant AND id = (new ->> 'id')::uuid;
            DELETE FROM idempotency WHERE tenant_id = its_tenant AND id = (new #>> '{claim,id}')::uuid;
            RETURN;
        END IF;
    END IF;
    IF new ? 'messages' THEN
        PERFORM write_messages(its_tenant, campaign, new -> 'messages');
    END IF;
    RETURN NEXT;
END $$;

-- Begins a batch of tool calls: locks the turn until the transaction ends. Raises an error if the turn is no longer this server's, or is being
-- reverted.
CREATE FUNCTION turn_hold(its_tenant uuid, who text, its_id uuid, its_instance bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    PERFORM FROM turn WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance
      AND status = 'running' AND NOT cancel_requested AND NOT stop_requested AND revert_as IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the turn was cancelled or taken over' USING ERRCODE = 'TK001';
    END IF;
END $$;

-- Writes a few events in one round trip. Whoever misses them after a crash of PostgreSQL still hears how the turn ended, so
-- the commit does not wait for the disk.
CREATE FUNCTION turn_tell(its_tenant uuid, who text, its_turn uuid, seqs int[], names text[], told text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
BEGIN
    INSERT INTO turn_event (tenant_id, turn_id, seq, name, data)
    SELECT its_tenant, its_turn, e.* FROM unnest(seqs, names, told) AS e
    ON CONFLICT (tenant_id, turn_id, seq) DO NOTHING;
END $$;

-- Ends a turn: stores its record (byte for byte), its usage if a model was asked, its answer under its key, and its messages, and
-- claims the dice that it used. Returns false if the turn is no longer this server's, or is being reverted; then nothing is written.
--
-- `ended` is what `Ended` in the server writes:
--   {"id": "0192…", "campaign_id": "0192…", "kind": "npc", "instance": 7, "status": "succeeded", "answer_headers": {"status": 200},
--    "usage": [ as in `count_usage` ], "messages": [ as in `write_messages` ],
--    "dice": {"seed": "0192…", "before": 4, "after": 6}, "reply": null}
-- `dice` is null if none were used (see `claim_dice`).
-- `reply` is what a reaction says to its player: {"id": "…", "reaction_id": "…", "player_id": "…", "entity_kind": "npc", "entity_id": "…",
-- "narrative": "…", "messages": […], "location_key": null, "reverts": false, "expires_seconds": 3600}. Without a narrative there is none.
-- Its messages are written when it is delivered.
CREATE FUNCTION turn_end(its_tenant uuid, who text, ended jsonb, its_record text, its_answer bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
    its_id uuid := ended ->> 'id';
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
    PERFORM count_usage(its_tenant, its_campaign, ended ->> 'kind', its_id, its_player, ended -> 'usage');
    PERFORM write_messages(its_tenant, its_campaign, ended -> 'messages');
    IF ended ? 'question' THEN
        UPDATE message m SET prompt_text = q.prompt_text, tokens = q.tokens
        FROM jsonb_to_record(ended -> 'question') AS q (id uuid, prompt_text text, tokens int)
        WHERE m.tenant_id = its_tenant AND m.id = q.id AND m.turn_id = its_id;
    END IF;
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
    IF jsonb_typeof(ended -> 'dice') = 'object' THEN
        PERFORM claim_dice(its_tenant, (ended #>> '{dice,seed}')::uuid, (ended #>> '{dice,before}')::bigint, (ended #>> '{dice,after}')::bigint);
    END IF;
    RETURN true;
END $$;

-- How far turns are. The text changes whenever there is more to hear of a turn.
CREATE FUNCTION turns_told(tenants uuid[], turns uuid[]) RETURNS TABLE (tenant_id uuid, turn_id uuid, told text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT f.tenant, f.turn, coalesce((
        SELECT t.status || ' ' || t.runs_before || ' ' || coalesce((
            SELECT max(e.seq) FROM turn_event e WHERE e.tenant_id = t.tenant_id AND e.turn_id = t.id), 0)
        FROM turn t WHERE t.tenant_id = f.tenant AND t.id = f.turn), 'gone')
    FROM unnest(tenants, turns) AS f (tenant, turn)
$$;

-- Whether nobody works on a turn any more: its lease ran out, or its server has not renewed it lately and does not hold its lock. The
-- instance -1 is the queue of reactions: a turn that waits there is not abandoned.
CREATE FUNCTION turn_is_abandoned(lease_until timestamptz, instance bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT instance <> -1 AND NOT lease_is_enough(lease_until) AND (lease_until < now() OR NOT server_lives(instance))
$$;

-- Turns that nobody works on any more and that may be taken over now: one of each tenant before the second of any, and those that failed
-- least often first.
CREATE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (SELECT a.instance FROM servers_alive() a),
    unfinished AS (
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.status = 'running' OR t.status = 'queued'
        UNION ALL
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.revert_as = 'undone')
    SELECT o.tenant_id, o.id FROM (
        SELECT u.*, row_number() OVER (PARTITION BY u.tenant_id ORDER BY u.revert_tries, u.lease_until, u.id) AS nth FROM unfinished u
        WHERE NOT lease_is_enough(u.lease_until) AND (u.lease_until < now() OR u.instance NOT IN (SELECT a.instance FROM alive a))
          AND (u.revert_try_at IS NULL OR u.revert_try_at <= now())) o
    ORDER BY o.nth, o.revert_tries, o.lease_until LIMIT rows_max
$$;

-- A server says that its turns go on. Returns those that someone wants cancelled or stopped, and those that are gone with their campaign.
-- It does not wait for a turn that locks its own row at this moment: that turn is alive, and the leases of the others would run out.
CREATE FUNCTION renew_leases(server bigint, turns uuid[], seconds int) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    WITH mine AS (
        SELECT id, cancel_requested OR stop_requested AS is_unwanted FROM turn
        WHERE instance = server AND status IN ('queued', 'running') AND id = ANY (turns)),
    free AS (
        SELECT tenant_id, id FROM turn
        WHERE instance = server AND status IN ('queued', 'running') AND id = ANY (turns) FOR NO KEY UPDATE SKIP LOCKED),
    renewed AS (
        UPDATE turn t SET lease_until = now() + seconds * interval '1 second'
        FROM free f WHERE t.tenant_id = f.tenant_id AND t.id = f.id)
    SELECT t FROM unnest(turns) AS t WHERE NOT EXISTS (SELECT 1 FROM mine WHERE id = t AND NOT is_unwanted)
$$;

-- Which of these places have no turn. A session has no player: its place has the nil id.
CREATE FUNCTION free_places(tenants uuid[], entities uuid[], players uuid[]) RETURNS TABLE (tenant_id uuid, entity_id uuid, player_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT w.tenant, w.entity, w.player FROM unnest(tenants, entities, players) AS w (tenant, entity, player)
    WHERE NOT EXISTS (
        SELECT FROM turn t WHERE t.tenant_id = w.tenant AND t.entity_id = w.entity AND t.status = 'running' AND t.kind <> 'planner'
          AND coalesce(t.player_id, '00000000-0000-0000-0000-000000000000') = w.player)
$$;

-- The alternatives of a turn's answer, itself among them, the oldest first. Empty if there are no others.
CREATE FUNCTION turn_alternatives(its_tenant uuid, its_id uuid, its_parent uuid) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN count(*) > 1 THEN array_agg(a.id ORDER BY a.id) ELSE '{}' END FROM (
        SELECT t.id FROM turn t WHERE t.tenant_id = its_tenant AND t.parent_turn_id = coalesce(its_parent, its_id)
          AND t.status IN ('succeeded', 'limit_reached')
        UNION SELECT coalesce(its_parent, its_id)) a
$$;

-- The rows that a turn changed and that AI tools must no longer change, as conflicts. What an owner has spent is not its row.
CREATE FUNCTION turn_locked(turn_of uuid) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH changed AS (
        SELECT DISTINCT j.tenant_id, j.table_name, j.row_id FROM journal j
        WHERE j.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND j.turn_id = turn_of AND j.op = 'update'
          AND j.table_name IN ('character', 'npc', 'owner', 'lore')
          AND EXISTS (SELECT FROM jsonb_each(j.after) AS a WHERE a.value IS DISTINCT FROM j.before -> a.key
                      AND a.key NOT IN ('version', 'updated_at', 'search', 'influence_current', 'influence_at'))),
    locked AS (
        SELECT c.table_name, c.row_id FROM changed c JOIN "character" t ON t.tenant_id = c.tenant_id AND t.id = c.row_id WHERE t.ai_lock
        UNION SELECT c.table_name, c.row_id FROM changed c JOIN npc t ON t.tenant_id = c.tenant_id AND t.id = c.row_id WHERE t.ai_lock
        UNION SELECT c.table_name, c.row_id FROM changed c JOIN owner t ON t.tenant_id = c.tenant_id AND t.id = c.row_id WHERE t.ai_lock
        UNION SELECT c.table_name, c.row_id FROM changed c JOIN lore t ON t.tenant_id = c.tenant_id AND t.id = c.row_id WHERE t.ai_lock)
    SELECT coalesce(jsonb_agg(jsonb_build_object('table', l.table_name, 'id', l.row_id, 'column', 'ai_lock', 'reason', 'locked')), '[]') FROM locked l
$$;

-- The column of an owner that has too little to pay once more for what a turn did; null if it has enough. `entry` is the revert that gave
-- the price back. What has grown since counts, and is written down if it is needed. The row stays locked until the transaction ends.
CREATE FUNCTION turn_unpaid(entry journal) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    now_row jsonb;
    price double precision;
BEGIN
    IF entry.table_name <> 'owner' OR entry.op <> 'update' THEN
        RETURN NULL;
    END IF;
    SELECT to_jsonb(o) INTO now_row FROM owner o WHERE o.tenant_id = entry.tenant_id AND o.id = entry.row_id FOR NO KEY UPDATE;
    IF now_row IS NULL THEN
        RETURN NULL;
    END IF;
    IF EXISTS (
        SELECT FROM jsonb_array_elements(entry.after -> 'resources') AS a
        LEFT JOIN jsonb_array_elements(entry.before -> 'resources') AS b ON b - 'amount' = a - 'amount'
        LEFT JOIN jsonb_array_elements(now_row -> 'resources') AS p ON p - 'amount' = a - 'amount'
        WHERE (a ->> 'amount')::numeric - coalesce((b ->> 'amount')::numeric, 0) > coalesce((p ->> 'amount')::numeric, 0)) THEN
        RETURN 'resources';
    END IF;
    price := (entry.after ->> 'influence_current')::double precision - influence_of(entry.before, (entry.after ->> 'influence_at')::timestamptz);
    IF price > influence_of(now_row, now()) THEN
        RETURN 'influence_current';
    ELSIF price > (now_row ->> 'influence_current')::double precision THEN
        UPDATE owner o SET influence_current = influence_of(now_row, now()), influence_at = greatest(o.influence_at, now())
        WHERE o.tenant_id = entry.tenant_id AND o.id = entry.row_id;
    END IF;
    RETURN NULL;
END $$;

-- Applies the effects of a turn again that were reverted last: reverts their revert, newest first. Returns the conflicts; nothing
-- of them is applied. With `is_careful`, a row that cannot be applied is one of these conflicts; without, an owner that cannot pay once
-- more is one. The caller's transaction acts in the turn, so these changes can be reverted again.
--
-- Example: a turn wrote a memory (journal row 10) and was set aside (row 11 deletes the memory, origin `revert`). Row 11 is the only revert
-- after the turn's last own change, so reverting it writes the memory again (row 12, origin `turn`).
CREATE FUNCTION turn_apply(turn_of uuid, is_careful boolean) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    own bigint;
    entry journal;
    unpaid text;
    news jsonb;
    conflicts jsonb := '[]';
BEGIN
    PERFORM FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR NO KEY UPDATE;
    IF is_careful THEN
        SET CONSTRAINTS ALL IMMEDIATE;
        SET CONSTRAINTS journal_close DEFERRED;
    END IF;
    own := coalesce((SELECT max(j.seq) FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of AND j.origin <> 'revert'), 0);
    FOR entry IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of AND j.origin = 'revert' AND j.seq > own
                 ORDER BY j.seq DESC LOOP
        IF is_careful THEN
            news := revert_carefully(entry);
        ELSE
            unpaid := turn_unpaid(entry);
            IF unpaid IS NOT NULL THEN
                conflicts := conflicts || jsonb_build_object('table', entry.table_name, 'id', entry.row_id, 'column', unpaid, 'reason', 'not_enough');
                CONTINUE;
            END IF;
            SELECT jsonb_agg(to_jsonb(r)) INTO news FROM revert_entry(entry) AS r;
        END IF;
        conflicts := conflicts || coalesce((
            SELECT jsonb_agg(jsonb_build_object('table', c -> 'table_name', 'id', c -> 'row_id', 'column', c -> 'column_name', 'reason', c -> 'reason'))
            FROM jsonb_array_elements(news) AS c WHERE c ->> 'reason' <> 'gone'), '[]');
    END LOOP;
    UPDATE turn t SET chosen = true, awaits = NULL, awaits_until = NULL, revert_next = NULL, revert_done = 0
    WHERE t.tenant_id = tenant AND t.id = turn_of;
    RETURN conflicts;
END $$;

-- Ends the wait of a turn that was set aside for another attempt. If that attempt answered, the turn stays set aside. Otherwise the
-- turn's effects are applied again. Returns what could not be applied; null if there was nothing to settle.
CREATE FUNCTION turn_settle(turn_of uuid) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    attempt uuid;
    its_status text;
BEGIN
    SELECT t.awaits INTO attempt FROM turn t
    WHERE t.tenant_id = tenant AND t.id = turn_of AND t.awaits IS NOT NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT a.status INTO its_status FROM turn a WHERE a.tenant_id = tenant AND a.id = attempt;
    IF its_status IN ('queued', 'running') THEN
        RETURN NULL;
    ELSIF its_status IN ('succeeded', 'limit_reached') THEN
        UPDATE turn t SET awaits = NULL, awaits_until = NULL WHERE t.tenant_id = tenant AND t.id = turn_of;
        RETURN '[]';
    END IF;
    RETURN turn_apply(turn_of, true);
END $$;

-- Turns of all tenants that were set aside for an attempt that does not run any more; the oldest of each tenant first.
CREATE FUNCTION turns_awaiting(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id FROM turn t WHERE t.awaits IS NOT NULL AND t.awaits_until < now()
      AND NOT EXISTS (SELECT FROM turn a WHERE a.tenant_id = t.tenant_id AND a.id = t.awaits AND a.status IN ('queued', 'running'))
    ORDER BY row_number() OVER (PARTITION BY t.tenant_id ORDER BY t.awaits_until), t.awaits_until LIMIT rows_max
$$;

-- Deletes turns older than the tenant's `turn_retention_days`, or `turn_age` without it, and old idempotency keys; at most `rows_max` of each.
-- Returns `rows_max` if more may be left. A turn that is being reverted, or that awaits another attempt, stays until that is settled. The ids
-- of turns rise with time, so this looks only at the first turns of each tenant.
CREATE FUNCTION prune_system(turn_age interval, idempotency_age interval, rows_max int) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    its record;
    entry record;
    old uuid[];
    turns bigint := 0;
    keys bigint := 0;
    portion bigint;
BEGIN
    FOR its IN
        SELECT n.tenant_id, a.oldest_kept FROM tenant n
        CROSS JOIN LATERAL (SELECT now() - coalesce((n.settings ->> 'turn_retention_days')::int * interval '1 day', turn_age) AS oldest_kept) a
        CROSS JOIN LATERAL (SELECT t.created_at FROM turn t WHERE t.tenant_id = n.tenant_id ORDER BY t.id LIMIT 1) f
        WHERE f.created_at < a.oldest_kept
    LOOP
        old := '{}';
        FOR entry IN SELECT t.id, t.created_at, t.status IN ('queued', 'running') OR t.revert_as IS NOT NULL OR t.awaits IS NOT NULL AS stays
                     FROM turn t WHERE t.tenant_id = its.tenant_id ORDER BY t.id LOOP
            EXIT WHEN entry.created_at >= its.oldest_kept OR cardinality(old) >= rows_max - turns;
            IF NOT entry.stays THEN
                old := old || entry.id;
            END IF;
        END LOOP;
        -- Once more, because a turn may have begun to be reverted.
        DELETE FROM turn t WHERE t.tenant_id = its.tenant_id AND t.id = ANY (old)
          AND t.status NOT IN ('queued', 'running') AND t.revert_as IS NULL AND t.awaits IS NULL;
        turns := turns + cardinality(old);
        EXIT WHEN turns >= rows_max;
    END LOOP;
    FOR its IN
        SELECT n.tenant_id FROM tenant n CROSS JOIN LATERAL (
            SELECT FROM idempotency o WHERE o.tenant_id = n.tenant_id AND o.created_at < now() - idempotency_age LIMIT 1) f
    LOOP
        DELETE FROM idempotency i USING (
            SELECT o.id FROM idempotency o WHERE o.tenant_id = its.tenant_id AND o.created_at < now() - idempotency_age
            ORDER BY o.created_at LIMIT rows_max - keys) gone
        WHERE i.tenant_id = its.tenant_id AND i.id = gone.id;
        GET DIAGNOSTICS portion = ROW_COUNT;
        keys := keys + portion;
        EXIT WHEN keys >= rows_max;
    END LOOP;
    RETURN greatest(turns, keys);
END $$;

CREATE TRIGGER b_created BEFORE INSERT ON turn FOR EACH ROW
    EXECUTE FUNCTION turn_created();

-- What is kept for long and read seldom is compressed with the faster method, if PostgreSQL was built with it.
DO $$ BEGIN
    ALTER TABLE turn ALTER record SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;
