-- Taking turns back, step by step: a comment of two semicolons ends each statement. The row of a turn says how far it is; a step
-- holds that row, so that two servers take nothing back twice, and what a crash leaves is gone on with.

-- What taking one row of the journal back would do to a row as it is: what it is to hold again, none if it is to go, and what stands in the
-- way. What the turn `but_of` made is in nobody's way. A column is put back if it still holds what was left in it; `hp`, `temp_hp` and
-- `influence_current` go back by their difference. Who has memories since, or has spoken, does not go: that would go as well.
-- `gone` is no conflict: a new row that somebody else has taken away already.
CREATE FUNCTION revert_plan(entry journal, now_row jsonb, but_of uuid, OUT wanted jsonb, OUT column_names text[], OUT reason text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    col text;
BEGIN
    column_names := '{}';
    IF entry.redacted_at IS NOT NULL THEN
        reason := 'redacted';
    ELSIF entry.op = 'insert' THEN
        IF now_row IS NULL THEN
            reason := 'gone';
        -- What is searched for follows from the rest.
        ELSIF now_row - '{version,updated_at,search}'::text[] IS DISTINCT FROM entry.after - '{version,updated_at,search}'::text[] THEN
            reason := 'changed_since';
        ELSIF entry.table_name IN ('character', 'npc', 'owner') AND (
            EXISTS (SELECT FROM memory m WHERE m.tenant_id = tenant AND m.holder_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)
            OR EXISTS (SELECT FROM memory m WHERE m.tenant_id = tenant AND m.subject_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)
            OR EXISTS (SELECT FROM message m WHERE m.tenant_id = tenant AND m.player_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)) THEN
            reason := 'used_since';
        END IF;
    ELSIF entry.op = 'update' THEN
        IF now_row IS NULL THEN
            reason := 'deleted_since';
            RETURN;
        END IF;
        wanted := '{}';
        FOR col IN SELECT k FROM jsonb_object_keys(entry.after) AS k
                   WHERE entry.after -> k IS DISTINCT FROM entry.before -> k AND k NOT IN ('version', 'updated_at', 'search') LOOP
            IF col IN ('hp', 'temp_hp', 'influence_current') THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, (now_row ->> col)::numeric
                    + (entry.before ->> col)::numeric - (entry.after ->> col)::numeric));
            ELSIF now_row -> col IS NOT DISTINCT FROM entry.after -> col THEN
                wanted := wanted || jsonb_build_object(col, entry.before -> col);
            ELSE
                column_names := column_names || col;
                reason := 'changed_since';
            END IF;
        END LOOP;
    ELSIF now_row IS NOT NULL THEN
        reason := 'created_since';
    ELSE
        wanted := entry.before;
    END IF;
END $$
-- ;;
-- Takes one row of the journal back, as a forward write: what it returns stood in the way, and nothing of that is done.
CREATE OR REPLACE FUNCTION revert_entry(entry journal) RETURNS TABLE (table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    now_row jsonb;
    plan record;
    cols text;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE tenant_id = $1 AND id = $2 FOR UPDATE', entry.table_name)
        INTO now_row USING tenant, entry.row_id;
    -- Nothing is excepted, and a memory that no turn made has none.
    SELECT * INTO plan FROM revert_plan(entry, now_row, '00000000-0000-0000-0000-000000000000');
    IF plan.reason IS NOT NULL THEN
        RETURN QUERY SELECT entry.table_name, entry.row_id, c, plan.reason
            FROM unnest(CASE WHEN plan.column_names = '{}' THEN ARRAY[NULL::text] ELSE plan.column_names END) AS c;
    END IF;
    IF entry.op = 'update' THEN
        SELECT string_agg(format('%I = r.%I', k, k), ', ') INTO cols FROM jsonb_object_keys(plan.wanted) AS k
        WHERE k IN (SELECT attname FROM pg_attribute WHERE attrelid = entry.table_name::regclass
                    AND attnum > 0 AND attgenerated = '' AND NOT attisdropped);
        IF cols IS NOT NULL THEN
            EXECUTE format('UPDATE %1$I t SET %2$s FROM jsonb_populate_record(NULL::%1$I, $3) r '
                           'WHERE t.tenant_id = $1 AND t.id = $2', entry.table_name, cols)
                USING tenant, entry.row_id, now_row || plan.wanted;
        END IF;
    ELSIF plan.reason IS NOT NULL THEN
        RETURN;
    ELSIF entry.op = 'insert' THEN
        EXECUTE format('DELETE FROM %I WHERE tenant_id = $1 AND id = $2', entry.table_name) USING tenant, entry.row_id;
    ELSE
        PERFORM restore_row(entry.table_name, entry.row_id, plan.wanted);
    END IF;
END $$
-- ;;
-- Rows of the journal that a turn has still to give back, newest first. A turn that is started anew under its id has rows of earlier attempts,
-- which are taken back already. Where a fight stands follows from its log, which the server takes back itself.
CREATE FUNCTION revert_left(turn_of uuid, already bigint, upto bigint, rows_max int) RETURNS SETOF journal LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT j.* FROM journal j
    WHERE j.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND j.turn_id = turn_of AND j.seq > already AND j.seq < upto
      AND j.origin <> 'revert' AND NOT (j.table_name = 'encounter' AND j.op = 'update')
    ORDER BY j.seq DESC LIMIT rows_max
$$
-- ;;
-- Takes away new rows of one table in one statement: memories and messages, of which a turn may have made very many.
CREATE FUNCTION revert_inserts(entries journal[]) RETURNS TABLE (table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    RETURN QUERY EXECUTE format(
        'WITH e AS MATERIALIZED (SELECT p.row_id, p.table_name, p.after FROM unnest($2) AS p), '
        'held AS MATERIALIZED (SELECT t.id, to_jsonb(t) AS now_row FROM %1$I t WHERE t.tenant_id = $1 '
            'AND t.id = ANY (ARRAY(SELECT e.row_id FROM e)) FOR UPDATE), '
        'same AS MATERIALIZED (SELECT h.id FROM held h JOIN e ON e.row_id = h.id '
            'WHERE h.now_row - $3 IS NOT DISTINCT FROM e.after - $3), '
        'taken AS (DELETE FROM %1$I t WHERE t.tenant_id = $1 AND t.id = ANY (ARRAY(SELECT s.id FROM same s))) '
        'SELECT e.table_name, e.row_id, NULL::text, CASE WHEN h.id IS NULL THEN ''gone'' ELSE ''changed_since'' END '
        'FROM e LEFT JOIN held h ON h.id = e.row_id LEFT JOIN same s ON s.id = e.row_id WHERE s.id IS NULL', entries[1].table_name)
    USING tenant, entries, '{version,updated_at,search}'::text[];
END $$
-- ;;
-- One step: takes back at most `rows_max` changes of a turn, in about `ms_max` milliseconds, and writes on its row how far that is.
-- With `is_careful` a row that cannot be taken back is set aside as a conflict (`failed`), unless another moment may be better.
-- `known` are conflicts found elsewhere. Returned are all conflicts so far (the first hundred of `total`), and of this step the new
-- rows that were gone and what was taken back.
CREATE FUNCTION revert_turn_step(turn_of uuid, rows_max int, ms_max int, is_careful boolean, known jsonb)
RETURNS TABLE (conflicts jsonb, total int, gone int, taken int, is_done boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    until timestamptz := clock_timestamp() + ms_max * interval '1 millisecond';
    already bigint;
    upto bigint;
    portion journal[];
    wanted int;
    run int;
    at int;
    news jsonb;
BEGIN
    SELECT t.reverted_through, coalesce(t.revert_next, 9223372036854775807), coalesce(t.revert_conflicts, '[]') || known,
           t.revert_conflicts_total + jsonb_array_length(known)
    INTO already, upto, conflicts, total FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR UPDATE;
    gone := 0;
    taken := 0;
    is_done := false;
    IF is_careful THEN
        -- What would be news at the commit is news where it can be set aside. The feed's end is written at the commit still.
        SET CONSTRAINTS ALL IMMEDIATE;
        SET CONSTRAINTS journal_close DEFERRED;
    END IF;
    WHILE NOT is_done AND taken < rows_max AND clock_timestamp() < until LOOP
        wanted := least(100, rows_max - taken);
        portion := ARRAY(SELECT j FROM revert_left(turn_of, already, upto, wanted) AS j);
        is_done := cardinality(portion) < wanted;
        at := 1;
        WHILE at <= cardinality(portion) LOOP
            run := 0;
            IF NOT is_careful THEN
                WHILE at + run <= cardinality(portion) AND portion[at + run].op = 'insert' AND portion[at + run].redacted_at IS NULL
                      AND portion[at + run].table_name IN ('memory', 'message')
                      AND portion[at + run].table_name = portion[at].table_name LOOP
                    run := run + 1;
                END LOOP;
            END IF;
            IF run > 0 THEN
                SELECT jsonb_agg(to_jsonb(r)) INTO news FROM revert_inserts(portion[at : at + run - 1]) AS r;
            ELSE
                run := 1;
                IF is_careful THEN
                    news := revert_carefully(portion[at]);
                ELSE
                    SELECT jsonb_agg(to_jsonb(r)) INTO news FROM revert_entry(portion[at]) AS r;
                END IF;
            END IF;
            IF news IS NOT NULL THEN
                gone := gone + (SELECT count(*) FROM jsonb_array_elements(news) AS c WHERE c ->> 'reason' = 'gone');
                SELECT coalesce(jsonb_agg(jsonb_build_object('table', c -> 'table_name', 'id', c -> 'row_id', 'column', c -> 'column_name',
                                                             'reason', c -> 'reason')), '[]')
                INTO news FROM jsonb_array_elements(news) AS c WHERE c ->> 'reason' <> 'gone';
                total := total + jsonb_array_length(news);
                conflicts := conflicts || news;
            END IF;
            at := at + run;
            taken := taken + run;
        END LOOP;
        IF cardinality(portion) > 0 THEN
            upto := portion[cardinality(portion)].seq;
        END IF;
        IF jsonb_array_length(conflicts) > 100 THEN
            conflicts := (SELECT jsonb_agg(c ORDER BY n) FROM jsonb_array_elements(conflicts) WITH ORDINALITY AS e (c, n) WHERE n <= 100);
        END IF;
    END LOOP;
    UPDATE turn t SET revert_next = upto, revert_done = t.revert_done + revert_turn_step.taken, revert_conflicts = revert_turn_step.conflicts,
           revert_conflicts_total = revert_turn_step.total,
           reverted_through = CASE WHEN revert_turn_step.is_done THEN coalesce((SELECT max(j.seq) FROM journal j
               WHERE j.tenant_id = tenant AND j.turn_id = turn_of), 0) ELSE t.reverted_through END
    WHERE t.tenant_id = tenant AND t.id = turn_of;
    RETURN NEXT;
END $$
-- ;;
-- The same as `revert_entry`, but a row that cannot be taken back is a conflict. What another moment may mend is not caught.
CREATE FUNCTION revert_carefully(entry journal) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    news jsonb;
BEGIN
    BEGIN
        SELECT jsonb_agg(to_jsonb(r)) INTO news FROM revert_entry(entry) AS r;
    EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE IN ('40001', '40P01', '55P03') OR SQLSTATE ~ '^(08|53|57|58|XX)' THEN
            RAISE;
        END IF;
        news := revert_aside(entry, 'failed');
    END;
    RETURN news;
END $$
-- ;;
CREATE FUNCTION revert_aside(entry journal, why text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_array(jsonb_build_object('table_name', entry.table_name, 'row_id', entry.row_id, 'column_name', NULL, 'reason', why))
$$
-- ;;
-- Leaves the next `rows_max` changes of a turn as they are, and names the first hundred of them among its conflicts; how many were left.
CREATE FUNCTION revert_turn_leave(turn_of uuid, rows_max int, why text) RETURNS int LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    already bigint;
    upto bigint;
    named jsonb;
    many int;
    lowest bigint;
BEGIN
    SELECT t.reverted_through, coalesce(t.revert_next, 9223372036854775807) INTO already, upto
    FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR UPDATE;
    SELECT count(*), min(l.seq),
           jsonb_agg(jsonb_build_object('table', l.table_name, 'id', l.row_id, 'column', NULL, 'reason', why) ORDER BY l.n) FILTER (WHERE l.n <= 100)
    INTO many, lowest, named FROM (
        SELECT r.seq, r.table_name, r.row_id, row_number() OVER (ORDER BY r.seq DESC) AS n FROM revert_left(turn_of, already, upto, rows_max) AS r) l;
    IF many > 0 THEN
        UPDATE turn t SET revert_next = lowest, revert_conflicts_total = t.revert_conflicts_total + many, revert_conflicts = (
            SELECT jsonb_agg(c ORDER BY n) FROM jsonb_array_elements(coalesce(t.revert_conflicts, '[]') || named) WITH ORDINALITY AS e (c, n)
            WHERE n <= 100)
        WHERE t.tenant_id = tenant AND t.id = turn_of;
    END IF;
    RETURN many;
END $$
-- ;;
-- The end of taking a turn back: how it ended, and its key may be used again.
CREATE FUNCTION revert_turn_end(turn_of uuid) RETURNS timestamptz LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    ended timestamptz;
BEGIN
    UPDATE idempotency i SET state = 'retry' FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of
      AND t.revert_as IS DISTINCT FROM 'undone' AND i.tenant_id = tenant AND i.turn_id = turn_of;
    UPDATE turn t SET
        status = CASE WHEN t.revert_as = 'undone' THEN t.status ELSE coalesce(t.revert_as, 'failed') END,
        finished_at = CASE WHEN t.revert_as = 'undone' THEN t.finished_at ELSE now() END,
        undone_at = CASE WHEN t.revert_as = 'undone' THEN now() ELSE t.undone_at END,
        revert_conflicts = CASE WHEN t.revert_as = 'undone' THEN nullif(t.revert_conflicts, '[]') ELSE coalesce(t.revert_conflicts, '[]') END,
        reverted_through = coalesce((SELECT max(j.seq) FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of), 0),
        revert_as = NULL, revert_since = NULL, revert_next = NULL, revert_total = NULL, revert_done = 0, revert_tries = 0,
        revert_stuck = 0, revert_try_at = NULL, revert_error = NULL
    WHERE t.tenant_id = tenant AND t.id = turn_of RETURNING now() INTO ended;
    RETURN ended;
END $$
-- ;;
-- What stands in the way of taking a turn back, looked for in portions and without writing anything: of the rows that the `rows_max` newest
-- changes below `upto` are of. A row is looked at where the turn changed it last, with all that the turn did to it. `next_seq` is null at the end.
CREATE FUNCTION revert_turn_look(turn_of uuid, upto bigint, rows_max int) RETURNS TABLE (conflicts jsonb, next_seq bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    already bigint;
    portion journal[];
    entry journal;
    older journal;
    now_row jsonb;
    plan record;
BEGIN
    conflicts := '[]';
    SELECT t.reverted_through INTO already FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of;
    portion := ARRAY(SELECT j FROM revert_left(turn_of, already, upto, rows_max) AS j);
    IF cardinality(portion) = rows_max THEN
        next_seq := portion[rows_max].seq;
    END IF;
    FOR entry IN
        SELECT p.* FROM unnest(portion) AS p
        LEFT JOIN memory m ON p.table_name = 'memory' AND p.op = 'insert' AND p.redacted_at IS NULL AND m.tenant_id = tenant AND m.id = p.row_id
        WHERE m.id IS NULL OR to_jsonb(m) - '{version,updated_at,search}'::text[] IS DISTINCT FROM p.after - '{version,updated_at,search}'::text[]
        ORDER BY p.seq DESC LOOP
        CONTINUE WHEN EXISTS (SELECT FROM journal j WHERE j.tenant_id = tenant AND j.row_id = entry.row_id AND j.seq > entry.seq
                              AND j.turn_id = turn_of AND j.origin <> 'revert');
        EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE tenant_id = $1 AND id = $2', entry.table_name) INTO now_row USING tenant, entry.row_id;
        FOR older IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.row_id = entry.row_id AND j.seq <= entry.seq AND j.seq > already
                     AND j.turn_id = turn_of AND j.origin <> 'revert' AND NOT (j.table_name = 'encounter' AND j.op = 'update')
                     ORDER BY j.seq DESC LOOP
            SELECT * INTO plan FROM revert_plan(older, now_row, turn_of);
            IF plan.reason <> 'gone' THEN
                conflicts := conflicts || (SELECT jsonb_agg(jsonb_build_object('table', older.table_name, 'id', older.row_id, 'column', c, 'reason', plan.reason))
                    FROM unnest(CASE WHEN plan.column_names = '{}' THEN ARRAY[NULL::text] ELSE plan.column_names END) AS c);
            END IF;
            EXIT WHEN plan.reason IS NOT NULL;
            now_row := CASE older.op WHEN 'insert' THEN NULL WHEN 'update' THEN now_row || plan.wanted ELSE plan.wanted END;
        END LOOP;
    END LOOP;
    RETURN NEXT;
END $$
-- ;;
DROP FUNCTION revert_turn(uuid)
-- ;;
-- Whether nobody works on a turn any more: its lease ran out, or its server no longer holds the advisory lock that says it lives.
CREATE FUNCTION turn_is_abandoned(lease_until timestamptz, instance bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT lease_until < now() OR NOT server_lives(instance)
$$
-- ;;
-- Turns that nobody works on any more and that may be tried now, one of each tenant before the second of any, and those that failed
-- least often before others.
CREATE OR REPLACE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (
        SELECT l.objid::bigint AS instance FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
    unfinished AS (
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.status = 'running' OR t.status = 'queued'
        UNION ALL
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.revert_as = 'undone')
    SELECT o.tenant_id, o.id FROM (
        SELECT u.*, row_number() OVER (PARTITION BY u.tenant_id ORDER BY u.revert_tries, u.lease_until, u.id) AS nth FROM unfinished u
        WHERE (u.lease_until < now() OR u.instance NOT IN (SELECT a.instance FROM alive a))
          AND (u.revert_try_at IS NULL OR u.revert_try_at <= now())) o
    ORDER BY o.nth, o.revert_tries, o.lease_until LIMIT rows_max
$$
-- ;;
-- What is being taken back, or waits for it, in the whole database: how many turns, how many of them failed at it, and for how many seconds the
-- oldest.
CREATE FUNCTION reverts_waiting() RETURNS TABLE (turns bigint, failing bigint, oldest_seconds bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (
        SELECT l.objid::bigint AS instance FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    SELECT count(*), count(*) FILTER (WHERE w.revert_tries > 0), coalesce(extract(epoch FROM now() - min(w.since))::bigint, 0) FROM (
        SELECT t.revert_tries, least(coalesce(t.revert_since, t.lease_until), now()) AS since FROM turn t
        WHERE (t.status = 'running' OR t.status = 'queued')
          AND (t.revert_as IS NOT NULL OR t.lease_until < now() OR t.instance NOT IN (SELECT a.instance FROM alive a))
        UNION ALL
        SELECT t.revert_tries, t.revert_since FROM turn t WHERE t.revert_as = 'undone') w
$$
-- ;;
-- Opens a batch of tool calls: holds the turn until the transaction ends, if it is still this server's and not being taken back.
CREATE OR REPLACE FUNCTION turn_hold(its_tenant uuid, who text, its_id uuid, its_instance bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    PERFORM FROM turn WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance
      AND status = 'running' AND NOT cancel_requested AND revert_as IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the turn was cancelled or taken over' USING ERRCODE = 'TK001';
    END IF;
END $$
-- ;;
-- How a turn ended, its usage if a model was asked, its answer under its key, and what was said. False if the turn is no longer this
-- server's, or is being taken back; nothing is written then.
CREATE OR REPLACE FUNCTION turn_finish(
    its_tenant uuid, who text, its_campaign uuid, its_id uuid, its_kind text, its_instance bigint, its_status text, its_record text,
    usage_id uuid, its_model text, calls int, prompt bigint, cached bigint, completion bigint, cost bigint,
    answer_headers jsonb, answer bytea, its_entity uuid, its_player uuid, asked_id uuid, asked_by text, asked text,
    asked_prompt text, asked_tokens int, asked_window uuid, told_id uuid, told_by text, told text, told_tokens int)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    UPDATE turn SET status = its_status, record = its_record::json, finished_at = now()
    WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance AND status = 'running' AND NOT cancel_requested
      AND revert_as IS NULL;
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
    IF asked_id IS NOT NULL THEN
        INSERT INTO message (tenant_id, id, campaign_id, type, speaker, content, author, player_id, entity_id, whisper_to,
                             blind, turn_id, prompt_text, tokens, window_start)
        VALUES (its_tenant, asked_id, its_campaign, 'chat', jsonb_build_object('name', asked_by), asked, 'player', its_player,
                its_entity, '[]', false, its_id, asked_prompt, asked_tokens, asked_window),
               (its_tenant, told_id, its_campaign, 'chat', jsonb_build_object('name', told_by), told, 'ai', its_player,
                its_entity, '[]', false, its_id, NULL, told_tokens, NULL);
    END IF;
    RETURN true;
END $$
-- ;;
-- A server says that its turns go on, and hears which of them someone wants cancelled, or are gone with their campaign. A turn whose row is
-- held by a batch of calls is passed over: to wait for it would cost all others of the server their leases.
CREATE OR REPLACE FUNCTION renew_leases(server bigint, turns uuid[], seconds int) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    WITH free AS MATERIALIZED (
        SELECT t.tenant_id, t.id FROM turn t WHERE t.instance = server AND (t.status = 'running' OR t.status = 'queued') AND t.id = ANY (turns)
        FOR NO KEY UPDATE SKIP LOCKED),
    renewed AS (
        UPDATE turn t SET lease_until = now() + seconds * interval '1 second' FROM free f WHERE t.tenant_id = f.tenant_id AND t.id = f.id)
    SELECT u FROM unnest(turns) AS u WHERE NOT EXISTS (
        SELECT FROM turn t WHERE t.id = u AND t.instance = server AND (t.status = 'running' OR t.status = 'queued') AND NOT t.cancel_requested)
$$
-- ;;
-- Forgets journal rows older than `older_than` and remembers, per campaign, up to where, and of what time the youngest of them was.
CREATE OR REPLACE FUNCTION prune_journal(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT j.tenant_id, j.campaign_id, j.seq FROM journal j
        JOIN tenant t ON t.tenant_id = j.tenant_id
        WHERE j.at < now() - coalesce((t.settings ->> 'journal_retention_days')::int * interval '1 day', older_than)
        ORDER BY j.at LIMIT rows_max
    ), pruned AS (
        DELETE FROM journal j USING old
        WHERE j.tenant_id = old.tenant_id AND j.campaign_id = old.campaign_id AND j.seq = old.seq
        RETURNING j.tenant_id, j.campaign_id, j.seq, j.at
    ), marked AS (
        UPDATE feed_head h SET pruned_seq = greatest(h.pruned_seq, p.seq), pruned_at = greatest(h.pruned_at, p.at)
        FROM (SELECT p.tenant_id, p.campaign_id, max(p.seq) AS seq, max(p.at) AS at FROM pruned p GROUP BY 1, 2) p
        WHERE h.tenant_id = p.tenant_id AND h.campaign_id = p.campaign_id RETURNING 1
    )
    SELECT count(*) INTO gone FROM pruned;
    RETURN gone;
END $$
-- ;;
-- Forgets turns and keys that are old; a turn that is being taken back stays until that is done.
CREATE OR REPLACE FUNCTION prune_system(turn_age interval, idempotency_age interval, rows_max int) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    turns bigint;
    keys bigint;
BEGIN
    WITH old AS (
        SELECT t.tenant_id, t.id FROM turn t JOIN tenant n ON n.tenant_id = t.tenant_id
        WHERE t.created_at < now() - coalesce((n.settings ->> 'turn_retention_days')::int * interval '1 day', turn_age)
          AND t.status NOT IN ('queued', 'running') AND t.revert_as IS NULL ORDER BY t.created_at LIMIT rows_max)
    DELETE FROM turn t USING old WHERE t.tenant_id = old.tenant_id AND t.id = old.id;
    GET DIAGNOSTICS turns = ROW_COUNT;
    WITH old AS (
        SELECT i.tenant_id, i.id FROM idempotency i WHERE i.created_at < now() - idempotency_age
        ORDER BY i.created_at LIMIT rows_max)
    DELETE FROM idempotency i USING old WHERE i.tenant_id = old.tenant_id AND i.id = old.id;
    GET DIAGNOSTICS keys = ROW_COUNT;
    RETURN turns + keys;
END $$
-- ;;
REVOKE ALL ON FUNCTION revert_plan, revert_left, revert_inserts, revert_turn_step, revert_carefully, revert_aside, revert_turn_leave,
    revert_turn_end, revert_turn_look, turn_is_abandoned, reverts_waiting FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION revert_plan, revert_left, revert_inserts, revert_turn_step, revert_carefully, revert_aside, revert_turn_leave,
    revert_turn_end, revert_turn_look, turn_is_abandoned, reverts_waiting TO tavernkeep_app
