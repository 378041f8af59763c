-- Forks: a campaign copied as it is, or as it was when a turn had ended. The functions that copy run as the caller, so row security
-- applies to them.

-- What deleted encounters were, so that a campaign can be forked as of an earlier turn.
CREATE TABLE encounter_past (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT uuid7(),
    campaign_id uuid NOT NULL,
    encounter_id uuid NOT NULL,
    kind text NOT NULL,
    content json NOT NULL,
    since_at timestamptz NOT NULL,
    until_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT encounter_past_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('encounter_past', 'read-only');
CREATE INDEX encounter_past_campaign ON encounter_past (tenant_id, campaign_id, kind);
CREATE INDEX encounter_past_until ON encounter_past (tenant_id, until_at);

-- The id of a row's copy. Ids of copies are made of those they copy, so that no table of pairs has to be kept: their time goes
-- back by `back_ms` and the bits of `flip` are turned in the last 32, which are random. Both are the fork's own. The order of
-- ids stays what it was, and whatever is made later comes later.
CREATE FUNCTION fork_id(id uuid, back_ms bigint, flip bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint - back_ms)
                        & 281474976710655), 12, '0')
        || substr(id::text, 15, 14)
        || lpad(to_hex(('x' || right(id::text, 8))::bit(32)::bigint # flip), 8, '0'))::uuid
$$;

-- A text in which the ids of the original's rows are replaced by those of their copies. Other ids stay. The rows are found in the journal, and
-- in the tables, because the journal may be pruned.
CREATE FUNCTION fork_text(content text, original uuid, target uuid, back_ms bigint, flip bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    word text;
BEGIN
    FOR word IN SELECT DISTINCT m[1] FROM regexp_matches(content,
        '([0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})', 'g') AS m LOOP
        IF word::uuid = original THEN
            content := replace(content, word, target::text);
        ELSIF EXISTS (SELECT FROM journal r WHERE r.tenant_id = tenant AND r.row_id = word::uuid AND r.campaign_id = original
                        AND r.table_name <> 'session')
            OR EXISTS (SELECT FROM character r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM npc r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM owner r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM scene r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM lore r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM message r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM memory r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
            OR EXISTS (SELECT FROM encounter r WHERE r.tenant_id = tenant AND r.id = word::uuid AND r.campaign_id = original)
        THEN
            content := replace(content, word, fork_id(word::uuid, back_ms, flip)::text);
        END IF;
    END LOOP;
    RETURN content;
END $$;

-- Copies the world of `original` into the new campaign `target`: as it stands, or, with `through`, as it stood after that number
-- of its journal, which reaches from there to the present. A row that was changed since is what it was before the first change
-- since. The columns of the tables are found in the catalogue. What was erased since is in no copy.
CREATE FUNCTION fork_campaign(
    original uuid, target uuid, through bigint, moment timestamptz, its_slug text, its_name text, its_origin jsonb, kinds text[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    flip bigint := ('x' || right(target::text, 8))::bit(32)::bigint;
    back_ms bigint := ('x' || substr(target::text, 20, 4) || substr(target::text, 25, 4))::bit(32)::bigint & 1073741823;
    kind text;
    cols text;
    vals text;
    place text;
    then_rows text;
    blank text;
BEGIN
    FOREACH kind IN ARRAY kinds LOOP
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), string_agg(CASE
            WHEN attname = 'tenant_id' THEN '$1'
            WHEN attname = 'campaign_id' OR (kind = 'campaign' AND attname = 'id') THEN '$4'
            WHEN kind = 'campaign' AND attname = 'slug' THEN '$7'
            WHEN kind = 'campaign' AND attname = 'name' THEN '$8'
            WHEN kind = 'campaign' AND attname = 'forked_from' THEN '$9'
            -- Sessions are not copied. The entity of a session's message is the session.
            WHEN attname = 'session_id' THEN 'NULL'
            WHEN kind = 'message' AND attname = 'entity_id'
                THEN 'CASE WHEN r.entity_id IS DISTINCT FROM r.session_id THEN fork_id(r.entity_id, $5, $6) END'
            -- Users and keys are not the campaign's.
            WHEN attname IN ('player_user', 'author') THEN 'r.' || quote_ident(attname)
            -- Time that passed since is no time in the copy.
            WHEN kind = 'owner' AND attname = 'influence_at' THEN 'r.influence_at + $10'
            -- Who has the turn is named like a participant.
            WHEN kind = 'encounter' AND attname = 'current_participant_id'
                THEN 'fork_text(r.current_participant_id, $2, $4, $5, $6)'
            WHEN atttypid = 'uuid'::regtype THEN format('fork_id(r.%I, $5, $6)', attname)
            WHEN atttypid = 'uuid[]'::regtype
                THEN format('ARRAY(SELECT fork_id(o, $5, $6) FROM unnest(r.%I) WITH ORDINALITY AS u (o, n) ORDER BY n)', attname)
            WHEN atttypid = 'jsonb'::regtype
                THEN format('CASE WHEN r.%1$I::text LIKE ''%%________-____-____-____-____________%%'' '
                            'THEN fork_text(r.%1$I::text, $2, $4, $5, $6)::jsonb ELSE r.%1$I END', attname)
            ELSE 'r.' || quote_ident(attname) END, ', ' ORDER BY attnum)
        INTO cols, vals FROM pg_attribute
        WHERE attrelid = kind::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped
          -- Versions and counters begin as those of new rows; a campaign's reference is unique in its tenant.
          AND attname NOT IN ('version', 'updated_at')
          AND NOT (kind = 'campaign' AND attname IN ('created_at', 'external_ref'));
        place := CASE kind WHEN 'campaign' THEN 'id' ELSE 'campaign_id' END;
        then_rows := format('SELECT t.* FROM %I t WHERE t.tenant_id = $1 AND t.%I = $2', kind, place);
        IF through IS NOT NULL THEN
            -- A column that is younger than a journal row has its default.
            SELECT format('ROW(%s)::%I', string_agg(coalesce(CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END,
                                                             'NULL'), ', ' ORDER BY a.attnum), kind)
            INTO blank FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = kind::regclass AND a.attnum > 0 AND NOT a.attisdropped;
            then_rows := format(
                'WITH first AS (SELECT j.row_id, min(j.seq) AS seq FROM journal j WHERE j.tenant_id = $1 AND j.campaign_id = $2 '
                    'AND j.seq > $3 AND j.table_name = %2$L GROUP BY j.row_id), '
                'since AS MATERIALIZED (SELECT j.row_id, j.op, j.before FROM first f '
                    'JOIN journal j ON j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq = f.seq) '
                '%1$s AND NOT EXISTS (SELECT FROM since s WHERE s.row_id = t.id) '
                'UNION ALL SELECT p.* FROM since s CROSS JOIN LATERAL jsonb_populate_record(%3$s, s.before) p '
                'WHERE s.op <> ''insert'' AND NOT s.before ? ''redacted''', then_rows, kind, blank);
        END IF;
        -- Rows that are numbered keep their numbers: whatever is made later gets a greater one.
        EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM (%s) r ORDER BY r.id', kind, cols, vals, then_rows)
            USING tenant, original, through, target, back_ms, flip, its_slug, its_name, its_origin, coalesce(now() - moment, interval '0');
    END LOOP;
    PERFORM fork_encounters(tenant, original, target, through, back_ms, flip);
END $$;

-- The logs, members and states of a fork's encounters. Each of them was written, and taken away, in a transaction that also
-- changed its encounter; the two carry the same moment. What came after `through` is therefore what has a moment of the
-- encounter's later changes. A state that changed since is its beginning with all events of the log as its tail.
CREATE FUNCTION fork_encounters(tenant uuid, original uuid, target uuid, through bigint, back_ms bigint, flip bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    WITH later AS MATERIALIZED (
        SELECT j.row_id, array_agg(DISTINCT j.at) AS moments FROM journal j
        WHERE j.tenant_id = tenant AND j.campaign_id = original AND j.seq > through AND j.table_name = 'encounter' GROUP BY j.row_id
    ), entry AS (
        SELECT l.encounter_id, l.seq, l.action::text, l.events::text, l.told, l.turn_id, l.created_at AS since_at,
               NULL::timestamptz AS until_at
        FROM encounter e JOIN encounter_log l ON l.tenant_id = tenant AND l.encounter_id = e.id
        WHERE e.tenant_id = tenant AND e.campaign_id = original
        UNION ALL
        SELECT p.encounter_id, (p.content ->> 'seq')::bigint, p.content ->> 'action', p.content ->> 'events',
               ARRAY(SELECT v::uuid FROM json_array_elements_text(p.content -> 'told') AS v),
               (p.content ->> 'turn_id')::uuid, p.since_at, p.until_at
        FROM encounter_past p WHERE p.tenant_id = tenant AND p.campaign_id = original AND p.kind = 'log'
    )
    INSERT INTO encounter_log (tenant_id, encounter_id, seq, action, events, told, turn_id)
    SELECT tenant, n.id, o.seq, fork_text(o.action, original, target, back_ms, flip)::json,
           fork_text(o.events, original, target, back_ms, flip)::json,
           ARRAY(SELECT fork_id(v, back_ms, flip) FROM unnest(o.told) WITH ORDINALITY AS u (v, nth) ORDER BY nth),
           fork_id(o.turn_id, back_ms, flip)
    FROM entry o JOIN encounter n ON n.tenant_id = tenant AND n.campaign_id = target AND n.id = fork_id(o.encounter_id, back_ms, flip)
    LEFT JOIN later w ON w.row_id = o.encounter_id
    WHERE (w.moments IS NULL OR o.since_at <> ALL (w.moments)) AND (o.until_at IS NULL OR o.until_at = ANY (w.moments));

    WITH later AS MATERIALIZED (
        SELECT j.row_id, array_agg(DISTINCT j.at) AS moments FROM journal j
        WHERE j.tenant_id = tenant AND j.campaign_id = original AND j.seq > through AND j.table_name = 'encounter' GROUP BY j.row_id
    ), entry AS (
        SELECT m.encounter_id, m.participant_id, m.kind, m.record_id, m.version, m.has_left, m.committed_at, m.turn_id, m.since_at,
               NULL::timestamptz AS until_at
        FROM encounter e JOIN encounter_member m ON m.tenant_id = tenant AND m.encounter_id = e.id
        WHERE e.tenant_id = tenant AND e.campaign_id = original
        UNION ALL
        SELECT p.encounter_id, p.content ->> 'participant_id', p.content ->> 'kind', (p.content ->> 'record_id')::uuid,
               (p.content ->> 'version')::bigint, coalesce((p.content ->> 'has_left')::boolean, false), (p.content ->> 'committed_at')::timestamptz, (p.content ->> 'turn_id')::uuid,
               p.since_at, p.until_at
        FROM encounter_past p WHERE p.tenant_id = tenant AND p.campaign_id = original AND p.kind = 'member'
    )
    INSERT INTO encounter_member (tenant_id, encounter_id, participant_id, kind, record_id, version, has_left, committed_at, turn_id)
    SELECT tenant, n.id, fork_text(o.participant_id, original, target, back_ms, flip), o.kind,
           fork_id(o.record_id, back_ms, flip),
           -- A record that was not edited since it joined has the version of a new row in the copy; no row has 0.
           CASE WHEN o.version = coalesce(
               (SELECT (j.before ->> 'version')::bigint FROM journal j
                WHERE j.tenant_id = tenant AND j.row_id = o.record_id AND j.seq > through ORDER BY j.seq LIMIT 1),
               (SELECT r.version FROM character r WHERE r.tenant_id = tenant AND r.id = o.record_id),
               (SELECT r.version FROM npc r WHERE r.tenant_id = tenant AND r.id = o.record_id)) THEN 1 ELSE 0 END,
           o.has_left, o.committed_at, fork_id(o.turn_id, back_ms, flip)
    FROM entry o JOIN encounter n ON n.tenant_id = tenant AND n.campaign_id = target AND n.id = fork_id(o.encounter_id, back_ms, flip)
    LEFT JOIN later w ON w.row_id = o.encounter_id
    WHERE (w.moments IS NULL OR o.since_at <> ALL (w.moments)) AND (o.until_at IS NULL OR o.until_at = ANY (w.moments));

    WITH later AS MATERIALIZED (
        SELECT DISTINCT j.row_id FROM journal j
        WHERE j.tenant_id = tenant AND j.campaign_id = original AND j.seq > through AND j.table_name = 'encounter'
    ), begun AS (
        SELECT e.id, s.beginning::text, s.state::text, s.tail::text, s.seq, w.row_id IS NULL AS is_same
        FROM encounter e JOIN encounter_state s ON s.tenant_id = tenant AND s.encounter_id = e.id
        LEFT JOIN later w ON w.row_id = e.id WHERE e.tenant_id = tenant AND e.campaign_id = original
        UNION ALL
        SELECT p.encounter_id, p.content ->> 'beginning', NULL, NULL, NULL, false
        FROM encounter_past p WHERE p.tenant_id = tenant AND p.campaign_id = original AND p.kind = 'state'
    )
    INSERT INTO encounter_state (tenant_id, encounter_id, beginning, state, tail, seq)
    SELECT tenant, n.id, its.beginning::json,
           CASE WHEN b.is_same THEN fork_text(b.state, original, target, back_ms, flip) ELSE its.beginning END::json,
           CASE WHEN b.is_same THEN fork_text(b.tail, original, target, back_ms, flip)::json ELSE coalesce(
               (SELECT json_agg(v.event ORDER BY l.seq, v.n) FROM encounter_log l
                CROSS JOIN LATERAL json_array_elements(l.events) WITH ORDINALITY AS v (event, n)
                WHERE l.tenant_id = tenant AND l.encounter_id = n.id), '[]') END,
           CASE WHEN b.is_same THEN b.seq ELSE coalesce(
               (SELECT max(l.seq) FROM encounter_log l WHERE l.tenant_id = tenant AND l.encounter_id = n.id), 0) END
    FROM begun b JOIN encounter n ON n.tenant_id = tenant AND n.campaign_id = target AND n.id = fork_id(b.id, back_ms, flip)
    CROSS JOIN LATERAL (SELECT fork_text(b.beginning, original, target, back_ms, flip) AS beginning) its;
END $$;

-- Keeps the state, log and members of an encounter that is deleted, for forks of an earlier time, as long as the journal is kept. Nothing is
-- kept of an encounter that is deleted with its campaign.
CREATE FUNCTION keep_encounter_past() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO encounter_past (tenant_id, campaign_id, encounter_id, kind, content, since_at)
    SELECT OLD.tenant_id, OLD.campaign_id, OLD.id, p.* FROM campaign c CROSS JOIN LATERAL (
        SELECT 'state', json_build_object('beginning', s.beginning), s.created_at
        FROM encounter_state s WHERE s.tenant_id = OLD.tenant_id AND s.encounter_id = OLD.id
        UNION ALL
        SELECT 'log', row_to_json(l), l.created_at
        FROM encounter_log l WHERE l.tenant_id = OLD.tenant_id AND l.encounter_id = OLD.id
        UNION ALL
        SELECT 'member', row_to_json(m), m.since_at
        FROM encounter_member m WHERE m.tenant_id = OLD.tenant_id AND m.encounter_id = OLD.id) p
    WHERE c.tenant_id = OLD.tenant_id AND c.id = OLD.campaign_id;
    RETURN OLD;
END $$;

-- Keeps an entry that is deleted from the log of an encounter.
CREATE FUNCTION keep_log_past() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO encounter_past (tenant_id, campaign_id, encounter_id, kind, content, since_at)
    SELECT e.tenant_id, e.campaign_id, e.id, 'log', row_to_json(OLD), OLD.created_at
    FROM encounter e WHERE e.tenant_id = OLD.tenant_id AND e.id = OLD.encounter_id;
    RETURN NULL;
END $$;

-- Keeps what a member was before it left, came back, was committed or deleted.
CREATE FUNCTION keep_member_past() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    INSERT INTO encounter_past (tenant_id, campaign_id, encounter_id, kind, content, since_at)
    SELECT e.tenant_id, e.campaign_id, e.id, 'member', row_to_json(OLD), OLD.since_at
    FROM encounter e WHERE e.tenant_id = OLD.tenant_id AND e.id = OLD.encounter_id;
    RETURN NULL;
END $$;

-- Deletes what was kept of encounters, once the journal's entry of the same moment is pruned.
CREATE FUNCTION prune_encounter_past(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT p.tenant_id, p.id FROM tenant t JOIN encounter_past p ON p.tenant_id = t.tenant_id
         AND p.until_at < now() - coalesce((t.settings ->> 'journal_retention_days')::int * interval '1 day', older_than)
        WHERE NOT EXISTS (SELECT FROM journal j WHERE j.tenant_id = p.tenant_id AND j.row_id = p.encounter_id AND j.at = p.until_at)
        LIMIT rows_max)
    DELETE FROM encounter_past p USING old WHERE p.tenant_id = old.tenant_id AND p.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

CREATE TRIGGER f_past BEFORE DELETE ON encounter FOR EACH ROW
    EXECUTE FUNCTION keep_encounter_past();
CREATE TRIGGER f_past AFTER DELETE ON encounter_log FOR EACH ROW
    EXECUTE FUNCTION keep_log_past();
CREATE TRIGGER f_past AFTER DELETE OR UPDATE OF committed_at, has_left ON encounter_member FOR EACH ROW
    EXECUTE FUNCTION keep_member_past();
