-- Reverting turns, in steps. A turn's row says how far its revert is. A step locks that row, so two servers never revert the same,
-- and after a crash the next step goes on.

-- The behaviors of an NPC without those that a change added.
CREATE FUNCTION behaviors_without(present jsonb, before jsonb, after jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(b ORDER BY n), '[]') FROM jsonb_array_elements(present) WITH ORDINALITY AS p (b, n)
    WHERE b NOT IN (SELECT a FROM jsonb_array_elements(after) AS a EXCEPT SELECT o FROM jsonb_array_elements(before) AS o)
$$;

-- The resources of an owner without what a change added to them, or with what it took. What is used up is gone; what a change used up comes
-- back.
CREATE FUNCTION resources_without(present jsonb, before jsonb, after jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    WITH known AS (
        SELECT r, n FROM jsonb_array_elements(present) WITH ORDINALITY AS p (r, n)
        UNION ALL
        SELECT o || '{"amount": 0}', 1000 + n FROM jsonb_array_elements(before) WITH ORDINALITY AS e (o, n)
        WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(present || after) AS p WHERE p - 'amount' = o - 'amount'))
    SELECT coalesce(jsonb_agg(r || jsonb_build_object('amount', m.amount) ORDER BY n) FILTER (WHERE m.amount > 0), '[]')
    FROM known
    LEFT JOIN jsonb_array_elements(after) AS a ON a - 'amount' = r - 'amount'
    LEFT JOIN jsonb_array_elements(before) AS b ON b - 'amount' = r - 'amount'
    CROSS JOIN LATERAL (SELECT (r ->> 'amount')::numeric - coalesce((a ->> 'amount')::numeric, 0) + coalesce((b ->> 'amount')::numeric, 0) AS amount) m
$$;

-- What reverting one entry of the journal would do to a row as it is now: what it is to hold (`wanted`: of an update the columns that go
-- back, null if it is to be deleted), and what prevents it (`reason`). A column goes back if it still has the value that the entry gave it.
-- `hp` and `temp_hp` go back by their difference, influence by what was spent, whatever has grown since. If others followed, an NPC's behaviors
-- lose those that the entry added, and an owner's resources go back by their difference. Folded columns go back with what
-- they fold. A creature that has got memories or messages since is not deleted, because they would go too, unless the turn `but_of` wrote
-- them. `gone` is not a conflict: somebody else has already deleted a new row.
CREATE FUNCTION revert_plan(entry journal, now_row jsonb, but_of uuid, OUT wanted jsonb, OUT column_names text[], OUT reason text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    not_compared text[] := '{version,updated_at,search,prompt_text,folded_text,folded_title,folded_content,folded_tags,folded_keys,folded_secondary_keys}';
    col text;
BEGIN
    column_names := '{}';
    IF entry.redacted_at IS NOT NULL THEN
        reason := 'redacted';
    ELSIF entry.op = 'insert' THEN
        IF now_row IS NULL THEN
            reason := 'gone';
        -- What is searched for follows from the rest, and images of new messages lack `prompt_text`.
        ELSIF now_row - not_compared IS DISTINCT FROM entry.after - not_compared THEN
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
                   WHERE entry.after -> k IS DISTINCT FROM entry.before -> k AND k NOT IN ('version', 'updated_at', 'search', 'influence_at')
                     AND NOT starts_with(k, 'folded_') LOOP
            IF col = 'influence_current' THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, least((now_row ->> 'influence_max')::double precision,
                    (now_row ->> col)::double precision
                    + influence_of(entry.before, (entry.after ->> 'influence_at')::timestamptz)
                    - (entry.after ->> col)::double precision)));
            ELSIF col IN ('hp', 'temp_hp') THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, (now_row ->> col)::numeric
                    + (entry.before ->> col)::numeric - (entry.after ->> col)::numeric));
            ELSIF now_row -> col IS NOT DISTINCT FROM entry.after -> col THEN
                wanted := wanted || jsonb_build_object(col, entry.before -> col);
                IF now_row ? ('folded_' || col) THEN
                    wanted := wanted || jsonb_build_object('folded_' || col, entry.before -> ('folded_' || col));
                END IF;
            ELSIF col = 'behaviors' THEN
                wanted := wanted || jsonb_build_object(col, behaviors_without(now_row -> col, entry.before -> col, entry.after -> col));
            ELSIF entry.table_name = 'owner' AND col = 'resources' THEN
                wanted := wanted || jsonb_build_object(col, resources_without(now_row -> col, entry.before -> col, entry.after -> col));
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
END $$;

-- Reverts one entry of the journal by writing the row. Returns what prevents it. A column in conflict stays as it is while the
-- others go back; a row that cannot be inserted or deleted is left alone.
CREATE FUNCTION revert_entry(entry journal) RETURNS TABLE (table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    now_row jsonb;
    plan record;
    cols text;
BEGIN
    -- Before a row is deleted, wait for those who begin to refer to it: they count as its users.
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE tenant_id = $1 AND id = $2 %s', entry.table_name,
                   CASE entry.op WHEN 'insert' THEN 'FOR UPDATE' ELSE 'FOR NO KEY UPDATE' END)
        INTO now_row USING tenant, entry.row_id;
    -- The nil id: no turn is excepted.
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
END $$;

-- The entries of a turn that are still to be reverted, newest first. Those of its earlier attempts under the same id are reverted already.
-- Encounters are left out: the server reverts their logs itself. So are replies that were dropped: the game master still sees them.
CREATE FUNCTION revert_left(turn_of uuid, already bigint, upto bigint, rows_max int) RETURNS SETOF journal LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT j.* FROM journal j
    WHERE j.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND j.turn_id = turn_of AND j.seq > already AND j.seq < upto
      AND j.origin <> 'revert' AND NOT (j.table_name = 'encounter' AND j.op = 'update')
      AND NOT (j.table_name = 'reply' AND EXISTS (
          SELECT FROM reply p WHERE p.tenant_id = j.tenant_id AND p.id = j.row_id AND p.state IN ('withheld', 'expired')))
    ORDER BY j.seq DESC LIMIT rows_max
$$;

-- Reverts entries for new rows of one table in one statement: memories and messages, of which a turn may have written very many.
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
    USING tenant, entries, '{version,updated_at,search,prompt_text}'::text[];
END $$;

-- One step: reverts at most `rows_max` changes of a turn, in about `ms_max` milliseconds, and stores on its row how far that is. With
-- `is_careful` a change that cannot be reverted is a conflict (`failed`), unless a later attempt may succeed. `known` are conflicts found
-- elsewhere. Returns all conflicts so far (the first hundred of `total`), how many new rows of this step were gone, and how many changes
-- it reverted (`taken`).
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
    INTO already, upto, conflicts, total FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR NO KEY UPDATE;
    gone := 0;
    taken := 0;
    is_done := false;
    IF is_careful THEN
        -- Deferred checks run now, so that their failures can be set aside as conflicts. The end of the feed is still written at the commit.
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
END $$;

-- As `revert_entry`, but an entry that cannot be reverted is a conflict. Errors that a later attempt may not meet are not caught.
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
END $$;

-- A conflict of a revert, as JSON.
CREATE FUNCTION revert_aside(entry journal, why text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_array(jsonb_build_object('table_name', entry.table_name, 'row_id', entry.row_id, 'column_name', NULL, 'reason', why))
$$;

-- Leaves the next `rows_max` changes of a turn as they are, and adds the first hundred of them to its conflicts. Returns how many were left.
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
    FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR NO KEY UPDATE;
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
END $$;

-- Ends the revert of a turn: stores how the turn ended, and lets its idempotency key be used again: for the same turn if it failed, for
-- another one if it was cancelled.
CREATE FUNCTION revert_turn_end(turn_of uuid) RETURNS timestamptz LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    ended timestamptz;
BEGIN
    DELETE FROM idempotency i USING turn t WHERE t.tenant_id = tenant AND t.id = turn_of AND t.revert_as = 'cancelled'
      AND i.tenant_id = tenant AND i.turn_id = turn_of;
    UPDATE idempotency i SET state = 'retry' FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of
      AND t.revert_as IS DISTINCT FROM 'undone' AND i.tenant_id = tenant AND i.turn_id = turn_of;
    UPDATE turn t SET
        status = CASE WHEN t.revert_as = 'undone' THEN t.status ELSE coalesce(t.revert_as, 'failed') END,
        finished_at = CASE WHEN t.revert_as = 'undone' THEN t.finished_at ELSE now() END,
        undone_at = CASE WHEN t.revert_as = 'undone' THEN now() ELSE t.undone_at END,
        revert_conflicts = CASE WHEN t.revert_as = 'undone' THEN nullif(t.revert_conflicts, '[]') ELSE coalesce(t.revert_conflicts, '[]') END,
        -- What was kept can still be undone.
        reverted_through = CASE WHEN t.on_failure = 'keep' AND t.revert_as IS DISTINCT FROM 'undone' THEN t.reverted_through
            ELSE coalesce((SELECT max(j.seq) FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of), 0) END,
        revert_as = NULL, revert_since = NULL, revert_next = NULL, revert_total = NULL, revert_done = 0, revert_tries = 0,
        revert_stuck = 0, revert_try_at = NULL, revert_error = NULL
    WHERE t.tenant_id = tenant AND t.id = turn_of RETURNING now() INTO ended;
    RETURN ended;
END $$;

-- What would prevent a turn from being reverted, without writing anything, a portion at a time: for the rows that its `rows_max` newest changes
-- below `upto` touched. A row is looked at where the turn changed it last, with all that the turn did to it. `next_seq` is null at the end.
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
END $$;

-- The reverts that are under way or waiting in the whole database: how many turns, how many of them failed at it, and the age of the oldest
-- in seconds.
CREATE FUNCTION reverts_waiting() RETURNS TABLE (turns bigint, failing bigint, oldest_seconds bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (SELECT a.instance FROM servers_alive() a)
    SELECT count(*), count(*) FILTER (WHERE w.revert_tries > 0), coalesce(extract(epoch FROM now() - min(w.since))::bigint, 0) FROM (
        SELECT t.revert_tries, least(coalesce(t.revert_since, t.lease_until), now()) AS since FROM turn t
        WHERE (t.status = 'running' OR t.status = 'queued')
          AND (t.revert_as IS NOT NULL OR NOT lease_is_enough(t.lease_until)
              AND (t.lease_until < now() OR t.instance NOT IN (SELECT a.instance FROM alive a)))
        UNION ALL
        SELECT t.revert_tries, t.revert_since FROM turn t WHERE t.revert_as = 'undone') w
$$;
