-- Removing a person's words from every table. The caller says what happens to which column (`world/src/erasure/places.rs`), for one table
-- at a time; these functions go through the table in portions. They run as the schema's owner, because some tables are written only by
-- triggers. Those that change rows work only for an unfinished erasure of the caller's tenant.

-- An erasure: how far it is and what it looks for, and afterwards that it was done. Without campaigns it reaches all of the tenant's.
CREATE TABLE erasure (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    campaign_ids uuid[],
    subject_ids uuid[] NOT NULL,
    author uuid,
    words text[] NOT NULL,
    phrases bigint NOT NULL DEFAULT 0,
    place int NOT NULL DEFAULT 0,
    seen text[],
    pass int NOT NULL DEFAULT 1,
    changed_in_pass bigint NOT NULL DEFAULT 0,
    rows bigint NOT NULL DEFAULT 0,
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CALL make_tenant_table('erasure', 'system');
CREATE INDEX erasure_moved ON erasure (moved_at);
CREATE INDEX erasure_under_way ON erasure (moved_at) WHERE done_at IS NULL;

-- What the person said, to find where others repeat it. `escaped` is the same as JSON writes it. Deleted when the erasure is done.
CREATE TABLE erasure_word (
    tenant_id uuid NOT NULL,
    erasure_id uuid NOT NULL,
    hash bytea NOT NULL,
    word text NOT NULL,
    escaped text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, erasure_id, hash),
    CONSTRAINT erasure_word_erasure_id_fkey FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasure (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('erasure_word', 'system');

-- Words as a regular expression finds them: none of them within another word. `_` and `-` end a word.
CREATE FUNCTION erase_pattern(words text[]) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT '(?<![[:alnum:]])(' || string_agg(regexp_replace(w, '([][(){}.*+?^$|\\-])', '\\\1', 'g'), '|' ORDER BY length(w) DESC, w)
        || ')(?![[:alnum:]])' FROM unnest(words) AS w WHERE w <> ''
$$;

-- A text without phrases and words. A phrase is found as it was written, whatever its case.
CREATE FUNCTION erase_text(content text, pattern text, phrases text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    phrase text;
BEGIN
    FOREACH phrase IN ARRAY coalesce(phrases, '{}') LOOP
        content := regexp_replace(content, regexp_replace(phrase, '([][(){}.*+?^$|\\-])', '\\\1', 'g'), '[erased]', 'gi');
    END LOOP;
    IF pattern IS NOT NULL THEN
        content := regexp_replace(content, pattern, '[erased]', 'gi');
    END IF;
    RETURN content;
END $$;

-- A JSON document without phrases and words: in every string and every member's name. A value that is one of `kept` is a word of the rules and
-- stays, unless it is what something is called.
CREATE FUNCTION erase_json(content jsonb, pattern text, phrases text[], kept text[], member text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    said text;
BEGIN
    CASE jsonb_typeof(content)
        WHEN 'string' THEN
            said := content #>> '{}';
            IF said = ANY (kept) AND member NOT IN ('name', 'slug', 'title', 'label', 'player_name') THEN
                RETURN content;
            END IF;
            RETURN to_jsonb(erase_text(said, pattern, phrases));
        WHEN 'array' THEN
            RETURN coalesce((SELECT jsonb_agg(erase_json(v, pattern, phrases, kept, member) ORDER BY n)
                             FROM jsonb_array_elements(content) WITH ORDINALITY AS e (v, n)), '[]');
        WHEN 'object' THEN
            RETURN coalesce((SELECT jsonb_object_agg(CASE WHEN k = ANY (kept) THEN k ELSE erase_text(k, pattern, phrases) END,
                                                     erase_json(v, pattern, phrases, kept, k))
                             FROM jsonb_each(content) AS e (k, v)), '{}');
        ELSE RETURN content;
    END CASE;
END $$;

-- A row without phrases and words. `columns` says how each column is treated: `text`, `json`, `slug` and `ref` (which name their row and
-- still have to), `key` (derived from a name). The folded form of a changed text is deleted.
CREATE FUNCTION erase_columns(image jsonb, columns jsonb, pattern text, phrases text[], kept text[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    col text;
    kind text;
    old_value jsonb;
    new_value jsonb;
    id text := replace(coalesce(image ->> 'id', image ->> 'session_id', ''), '-', '');
BEGIN
    FOR col, kind IN SELECT * FROM jsonb_each_text(columns) LOOP
        old_value := image -> col;
        CONTINUE WHEN old_value IS NULL OR old_value = 'null';
        new_value := CASE kind WHEN 'json' THEN erase_json(old_value, pattern, phrases, kept, col)
                               ELSE to_jsonb(erase_text(old_value #>> '{}', pattern, phrases)) END;
        CONTINUE WHEN new_value = old_value;
        image := image || jsonb_build_object(col, CASE kind
            WHEN 'slug' THEN to_jsonb('erased_' || right(id, 12))
            WHEN 'ref' THEN to_jsonb('erased:' || id)
            WHEN 'key' THEN to_jsonb('erased'::text)
            ELSE new_value END);
        -- An image in the journal holds what was derived from the words as well.
        image := image - 'search';
        IF image ? ('folded_' || col) THEN
            image := image || jsonb_build_object('folded_' || col, NULL);
        END IF;
    END LOOP;
    RETURN image;
END $$;

-- What stays of the image of an erased row: its identity and version. Versions only rise, and heads are found by these columns.
CREATE FUNCTION erase_image(image jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT jsonb_object_agg(k, v) || '{"redacted": true}' FROM jsonb_each(image) AS e (k, v)
    WHERE k IN ('id', 'tenant_id', 'campaign_id', 'version', 'created_at', 'updated_at', 'holder_type', 'holder_id', 'subject_type', 'subject_id')
$$;

-- The text of an answer that was stored. Bytes that are not UTF-8 are escaped.
CREATE FUNCTION erase_readable(body bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN convert_from(body, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(body, 'escape');
END $$;

-- Whether a row of a table is the person's own. A message loses its player when the character is deleted; the
-- journal and its turn still name it.
CREATE FUNCTION erase_is_own(place jsonb, image jsonb, tenant uuid, subjects uuid[]) RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    names text[] := subjects::text[];
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements_text(place -> 'own') AS c WHERE image ->> c = ANY (names)) THEN
        RETURN true;
    END IF;
    CASE place ->> 'table'
        WHEN 'message' THEN
            RETURN image ->> 'turn_id' IS NOT NULL AND place ->> 'own' <> '[]' AND EXISTS (
                    SELECT FROM turn t WHERE t.tenant_id = tenant AND t.id = (image ->> 'turn_id')::uuid AND t.player_id = ANY (subjects))
                OR image ->> 'player_id' IS NULL AND image ->> 'author' IN ('player', 'ai') AND place ->> 'own' <> '[]' AND EXISTS (
                    SELECT FROM journal j WHERE j.tenant_id = tenant AND j.row_id = (image ->> 'id')::uuid
                      AND coalesce(j.before, j.after) ->> 'player_id' = ANY (names));
        WHEN 'idempotency' THEN
            RETURN image ->> 'turn_id' IS NOT NULL AND EXISTS (
                SELECT FROM turn t WHERE t.tenant_id = tenant AND t.id = (image ->> 'turn_id')::uuid
                  AND (t.player_id = ANY (subjects) OR t.entity_id = ANY (subjects)));
        ELSE RETURN false;
    END CASE;
END $$;

-- Stores what the person said, sentence by sentence, to find where it is repeated. Leaves out short sentences, and those beyond a limit.
CREATE FUNCTION erase_note(tenant uuid, its_erasure uuid, said text) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, public, pg_temp AS $$
    INSERT INTO erasure_word (tenant_id, erasure_id, hash, word, escaped)
    SELECT tenant, its_erasure, sha256(convert_to(s, 'UTF8')), s, trim(BOTH '"' FROM to_jsonb(s)::text)
    FROM (SELECT DISTINCT lower(left(btrim(p, E' \t\r"''*_'), 500)) AS s
          FROM regexp_split_to_table(left(said, 20000), '[\n.!?]+') AS p LIMIT 200) sentence
    -- Fewer than three words may be a name of the rules.
    WHERE length(s) >= 12 AND (s ~ '\S+\s+\S+\s+\S' OR s ~ '[0-9]') AND (SELECT e.phrases FROM erasure e WHERE e.tenant_id = tenant AND e.id = its_erasure) < 20000
    ON CONFLICT DO NOTHING
$$;

-- Goes on through a table: looks at the next `rows_max` rows after `seen` (the key of the last one) and erases what is in them. `last`
-- is null at the end of the table.
CREATE FUNCTION erase_batch(its_erasure uuid, place jsonb, seen text[], rows_max int)
RETURNS TABLE (last text[], looked int, changed int) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    what text := place ->> 'table';
    its erasure;
    pattern text;
    loose text;
    kept text[] := ARRAY(SELECT jsonb_array_elements_text(place -> 'kept'));
    keys text;
    after_key text;
    is_key text;
    scope text;
    found_key text[];
    image jsonb;
    readable text;
    whole text;
    phrases text[];
    is_own boolean;
    erased jsonb;
    cols text;
    done int;
BEGIN
    SELECT e.* INTO its FROM erasure e WHERE e.tenant_id = tenant AND e.id = its_erasure AND e.done_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such erasure is under way' USING ERRCODE = 'no_data_found';
    END IF;
    PERFORM set_config('app.erasing', 'on', true);
    pattern := erase_pattern(its.words);
    -- What may hold one of the words, as JSON writes it.
    SELECT string_agg(regexp_replace(trim(BOTH '"' FROM to_jsonb(w)::text), '([][(){}.*+?^$|\\-])', '\\\1', 'g'), '|') INTO loose
    FROM unnest(its.words || its.subject_ids::text[]) AS w WHERE w <> '';
    SELECT string_agg(format('t.%I::text', k ->> 'name'), ', '),
           format('(%s) > (%s)', string_agg(format('t.%I', k ->> 'name'), ', '),
                  string_agg(format('(($2)[%s])::%s', n, (k ->> 'type')::regtype), ', ')),
           string_agg(format('t.%I = (($2)[%s])::%s', k ->> 'name', n, (k ->> 'type')::regtype), ' AND ')
    INTO keys, after_key, is_key FROM jsonb_array_elements(place -> 'keys') WITH ORDINALITY AS e (k, n);
    scope := CASE place ->> 'scope'
        WHEN 'self' THEN '($3 IS NULL OR t.id = ANY ($3))'
        WHEN 'campaign' THEN '($3 IS NULL OR t.campaign_id = ANY ($3))'
        WHEN 'encounter' THEN '($3 IS NULL OR EXISTS (SELECT FROM encounter p WHERE p.tenant_id = $1 AND p.id = t.encounter_id AND p.campaign_id = ANY ($3)))'
        WHEN 'session' THEN '($3 IS NULL OR EXISTS (SELECT FROM session p WHERE p.tenant_id = $1 AND p.id = t.session_id AND p.campaign_id = ANY ($3)))'
        WHEN 'turn' THEN 'EXISTS (SELECT FROM turn p WHERE p.tenant_id = $1 AND p.id = t.turn_id AND p.status NOT IN (''queued'', ''running'') '
                         'AND ($3 IS NULL OR p.campaign_id = ANY ($3)))'
        WHEN 'tenant' THEN '($3 IS NULL OR true)' END;
    looked := 0;
    changed := 0;
    FOR found_key IN EXECUTE format('SELECT ARRAY[%s] FROM %I t WHERE t.tenant_id = $1 AND ($2 IS NULL OR %s) AND %s ORDER BY %s LIMIT $4',
        keys, what, after_key, scope, (SELECT string_agg(format('t.%I', k ->> 'name'), ', ' ORDER BY n)
                                       FROM jsonb_array_elements(place -> 'keys') WITH ORDINALITY AS e (k, n)))
        USING tenant, seen, its.campaign_ids, rows_max LOOP
        looked := looked + 1;
        last := found_key;
        IF place ->> 'then' = 'goes' THEN
            EXECUTE format('DELETE FROM %I t WHERE t.tenant_id = $1 AND %s', what, is_key) USING tenant, found_key;
            changed := changed + 1;
            CONTINUE;
        END IF;
        EXECUTE format('SELECT to_jsonb(t) - %L - %L, %s FROM %I t WHERE t.tenant_id = $1 AND %s FOR NO KEY UPDATE', 'search', 'body',
                       CASE what WHEN 'idempotency' THEN 'erase_readable(t.body)' ELSE 'NULL::text' END, what, is_key)
            INTO image, readable USING tenant, found_key;
        CONTINUE WHEN image IS NULL OR (what = 'idempotency' AND image ->> 'state' = 'erased');
        is_own := erase_is_own(place, image, tenant, its.subject_ids);
        whole := lower(image::text || coalesce(readable, ''));
        phrases := ARRAY(SELECT w.word FROM erasure_word w
                         WHERE w.tenant_id = tenant AND w.erasure_id = its_erasure AND position(w.escaped IN whole) > 0 ORDER BY length(w.word) DESC);
        CONTINUE WHEN NOT is_own AND phrases = '{}' AND coalesce(whole !~* loose, true)
            AND NOT (what = 'turn' AND image ->> 'kind' = 'gm' AND image #> '{record,trace}' IS NOT NULL);
        IF what = 'journal' THEN
            done := erase_journal(its, place, image, pattern, phrases, kept);
        ELSIF what = 'idempotency' THEN
            IF erase_columns(image, '{"key": "text", "route": "text"}', pattern, phrases, kept) <> image THEN
                DELETE FROM idempotency t WHERE t.tenant_id = tenant AND t.id = (image ->> 'id')::uuid;
            ELSE
                UPDATE idempotency t SET headers = NULL, body = NULL, state = 'erased'
                WHERE t.tenant_id = tenant AND t.id = (image ->> 'id')::uuid AND t.state <> 'running';
            END IF;
            GET DIAGNOSTICS done = ROW_COUNT;
        ELSIF place ->> 'then' = 'matching' THEN
            done := 0;
            IF erase_columns(image, place -> 'columns', pattern, phrases, kept) <> image THEN
                EXECUTE format('DELETE FROM %I t WHERE t.tenant_id = $1 AND %s', what, is_key) USING tenant, found_key;
                done := 1;
            END IF;
        ELSIF is_own AND place ->> 'then' = 'delete' THEN
            IF what = 'message' THEN
                PERFORM erase_note(tenant, its_erasure, image ->> 'content');
            END IF;
            EXECUTE format('DELETE FROM %I t WHERE t.tenant_id = $1 AND %s', what, is_key) USING tenant, found_key;
            done := 1;
        ELSE
            erased := image;
            IF is_own AND place ->> 'then' = 'wipe' THEN
                IF what = 'turn' AND image ->> 'action' IS NOT NULL THEN
                    PERFORM erase_note(tenant, its_erasure, image ->> 'action');
                END IF;
                erased := erased || (place -> 'wiped');
            ELSIF what = 'turn' AND image ->> 'kind' = 'gm' THEN
                -- What a session's AI was told holds what everybody said.
                erased := jsonb_set(erased, '{record}', coalesce(erased -> 'record', 'null') - 'trace', false);
            END IF;
            IF what = 'lore' THEN
                erased := erased || jsonb_build_object('known_by', coalesce((SELECT jsonb_agg(k) FROM jsonb_array_elements_text(image -> 'known_by') AS k
                                                                             WHERE k <> ALL (its.subject_ids::text[])), '[]'));
            END IF;
            erased := erase_columns(erased, place -> 'columns', pattern, phrases, kept);
            IF what = 'dice_seed' AND erased <> image THEN
                -- Dice under another seed of the client's could not be verified: the stream ends here.
                erased := erased || jsonb_build_object('revealed_at', coalesce((image ->> 'revealed_at')::timestamptz, now()));
            END IF;
            done := 0;
            IF erased <> image THEN
                erased := erased || coalesce(place -> 'marks', '{}');
                SELECT string_agg(quote_ident(k), ', ') INTO cols FROM jsonb_object_keys(erased) AS k
                WHERE erased -> k IS DISTINCT FROM image -> k;
                EXECUTE format('UPDATE %1$I t SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::%1$I, $3)) WHERE t.tenant_id = $1 AND %3$s',
                               what, cols, is_key) USING tenant, found_key, erased;
                done := 1;
            END IF;
        END IF;
        changed := changed + done;
    END LOOP;
    UPDATE erasure e SET phrases = (SELECT count(*) FROM erasure_word w WHERE w.tenant_id = tenant AND w.erasure_id = its_erasure)
    WHERE e.tenant_id = tenant AND e.id = its_erasure AND what IN ('message', 'turn');
    IF looked < rows_max THEN
        last := NULL;
    END IF;
    RETURN NEXT;
END $$;

-- Erases in one row of the journal. Of a row that was the person's own only its identity stays; rows of others lose the words. Returns whether
-- anything changed.
CREATE FUNCTION erase_journal(its erasure, place jsonb, image jsonb, pattern text, phrases text[], kept text[]) RETURNS int LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    old_row jsonb := nullif(image -> 'before', 'null');
    new_row jsonb := nullif(image -> 'after', 'null');
    any_row jsonb := coalesce(nullif(image -> 'after', 'null'), image -> 'before');
    names text[] := its.subject_ids::text[];
    columns jsonb := coalesce(place -> 'images' -> (image ->> 'table_name'), '{}');
    request text := erase_text(image ->> 'request_id', pattern, phrases);
    who uuid := CASE WHEN image ->> 'user_id' = ANY (names) THEN NULL ELSE (image ->> 'user_id')::uuid END;
    is_own boolean;
    col text;
BEGIN
    is_own := its.kind = 'character' AND CASE image ->> 'table_name'
        WHEN 'character' THEN image ->> 'row_id' = ANY (names)
        WHEN 'message' THEN coalesce(coalesce(old_row ->> 'player_id', new_row ->> 'player_id') = ANY (names), false) OR EXISTS (
            SELECT FROM turn t WHERE t.tenant_id = its.tenant_id AND t.id = (any_row ->> 'turn_id')::uuid AND t.player_id = ANY (its.subject_ids))
        WHEN 'memory' THEN any_row ->> 'subject_id' = ANY (names) OR any_row ->> 'holder_id' = ANY (names)
        ELSE false END;
    IF is_own THEN
        IF image ->> 'table_name' = 'message' AND NOT any_row ? 'redacted' THEN
            PERFORM erase_note(its.tenant_id, its.id, any_row ->> 'content');
        END IF;
        old_row := erase_image(old_row);
        new_row := erase_image(new_row);
    ELSE
        old_row := erase_columns(old_row, columns, pattern, phrases, kept);
        new_row := erase_columns(new_row, columns, pattern, phrases, kept);
        IF its.kind = 'user' THEN
            FOREACH col IN ARRAY ARRAY['player_user', 'author'] LOOP
                IF old_row ->> col = ANY (names) THEN
                    old_row := old_row || jsonb_build_object(col, NULL) || CASE WHEN col = 'player_user' THEN '{"player_name": null}' ELSE '{}' END::jsonb;
                END IF;
                IF new_row ->> col = ANY (names) THEN
                    new_row := new_row || jsonb_build_object(col, NULL) || CASE WHEN col = 'player_user' THEN '{"player_name": null}' ELSE '{}' END::jsonb;
                END IF;
            END LOOP;
        END IF;
    END IF;
    UPDATE journal j SET before = old_row, after = new_row, request_id = request, user_id = who, redacted_at = now()
    WHERE j.tenant_id = its.tenant_id AND j.campaign_id = (image ->> 'campaign_id')::uuid AND j.seq = (image ->> 'seq')::bigint
      AND (j.before, j.after, j.request_id, j.user_id) IS DISTINCT FROM (old_row, new_row, request, who);
    RETURN CASE WHEN FOUND THEN 1 ELSE 0 END;
END $$;

-- Leaves the former values out of the journal's entries for what an erasure changes.
CREATE FUNCTION journal_erases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.op = 'delete' THEN
        NEW.before := public.erase_image(NEW.before);
    ELSIF NEW.op = 'update' THEN
        NEW.before := NEW.after || jsonb_build_object('version', NEW.before -> 'version', 'updated_at', NEW.before -> 'updated_at');
    END IF;
    NEW.redacted_at := now();
    RETURN NEW;
END $$;

-- Locks an unfinished erasure, asks every turn of the person to stop, and says whether turns still run that began before (clocks may differ
-- by seconds): they may know what is to be forgotten. It does not wait for reactions to other players that are still queued, because they
-- have read nothing yet. No row if somebody else has the lock, or the erasure is done.
CREATE FUNCTION erase_hold(its_erasure uuid) RETURNS TABLE (
    kind text, place int, seen text[], pass int, changed_in_pass bigint, is_awaited boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    its erasure;
BEGIN
    SELECT e.* INTO its FROM erasure e WHERE e.tenant_id = tenant AND e.id = its_erasure AND e.done_at IS NULL FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE turn t SET cancel_requested = true
    WHERE t.tenant_id = tenant AND t.status IN ('queued', 'running') AND NOT t.cancel_requested
      AND (t.player_id = ANY (its.subject_ids) OR t.entity_id = ANY (its.subject_ids));
    is_awaited := EXISTS (
        SELECT FROM turn t WHERE t.tenant_id = tenant AND t.status IN ('queued', 'running')
          AND (its.campaign_ids IS NULL OR t.campaign_id = ANY (its.campaign_ids))
          AND (t.created_at <= its.created_at + interval '5 seconds' AND t.instance <> -1 OR t.player_id = ANY (its.subject_ids)));
    kind := its.kind; place := its.place; seen := its.seen; pass := its.pass; changed_in_pass := its.changed_in_pass;
    RETURN NEXT;
END $$;

-- Deletes what is left when every table was gone through: the person's own row. False while more than `rows_max` rows belong to it.
CREATE FUNCTION erase_last(its_erasure uuid, rows_max int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    its erasure;
BEGIN
    SELECT e.* INTO its FROM erasure e WHERE e.tenant_id = tenant AND e.id = its_erasure AND e.done_at IS NULL;
    PERFORM set_config('app.erasing', 'on', true);
    -- A user's account went when it began.
    IF its.kind = 'user' THEN
        RETURN true;
    END IF;
    -- Nobody writes of the characters any more until this ends.
    PERFORM FROM character c WHERE c.tenant_id = tenant AND c.id = ANY (its.subject_ids) ORDER BY c.id FOR UPDATE;
    IF (SELECT count(*) FROM (SELECT FROM message m WHERE m.tenant_id = tenant AND m.player_id = ANY (its.subject_ids) LIMIT rows_max) x)
     + (SELECT count(*) FROM (SELECT FROM memory m WHERE m.tenant_id = tenant AND m.subject_id = ANY (its.subject_ids) LIMIT rows_max) x)
        >= rows_max THEN
        RETURN false;
    END IF;
    DELETE FROM message m WHERE m.tenant_id = tenant AND m.player_id = ANY (its.subject_ids);
    DELETE FROM character c WHERE c.tenant_id = tenant AND c.id = ANY (its.subject_ids);
    RETURN true;
END $$;

-- The forks of a campaign, and forks of those, with the copy of a character in each. Deleted ones too: their rows may still be there.
CREATE FUNCTION erase_forks(its_campaign uuid, its_character uuid, rows_max int) RETURNS TABLE (id uuid, character_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE copy AS (
        SELECT its_campaign AS id, its_character AS character_id, ARRAY[its_campaign] AS path
        UNION ALL
        SELECT c.id, fork_id(o.character_id, ('x' || substr(c.id::text, 20, 4) || substr(c.id::text, 25, 4))::bit(32)::bigint & 1073741823,
                             ('x' || right(c.id::text, 8))::bit(32)::bigint), o.path || c.id
        FROM copy o JOIN campaign c ON c.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid
            AND c.forked_from ->> 'campaign_id' = o.id::text AND c.forked_from IS NOT NULL
        WHERE c.id <> ALL (o.path))
    SELECT copy.id, copy.character_id FROM copy WHERE copy.id <> its_campaign LIMIT rows_max
$$;

-- Erasures that began or ended after a moment, or are under way. Servers carry these on, and drop what they have cached.
CREATE FUNCTION erasures_moved(since timestamptz, rows_max int) RETURNS TABLE (
    tenant_id uuid, id uuid, moved_at timestamptz, is_done boolean, campaign_ids uuid[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    (SELECT e.tenant_id, e.id, e.moved_at, e.done_at IS NOT NULL, e.campaign_ids FROM erasure e
     WHERE e.moved_at > since ORDER BY e.moved_at LIMIT rows_max)
    UNION
    (SELECT e.tenant_id, e.id, e.moved_at, false, e.campaign_ids FROM erasure e WHERE e.done_at IS NULL ORDER BY e.moved_at LIMIT rows_max)
$$;

CREATE TRIGGER a_erases BEFORE INSERT ON journal FOR EACH ROW WHEN ((current_setting('app.erasing', true) = 'on'))
    EXECUTE FUNCTION journal_erases();
