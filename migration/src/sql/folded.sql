-- Texts as they are searched and compared: a comment of two semicolons ends each statement.

-- `folded_x` is the text of `x` without differences of case, composition and typography, followed by a line with the pairs and single
-- letters of its scripts without spaces. The server writes it with `x` (`base::search`). It is null for a text in ASCII, and after an
-- erasure until the server has written it again; then `x` itself stands for it.
ALTER TABLE lore ADD COLUMN folded_title text, ADD COLUMN folded_content text, ADD COLUMN folded_tags text, ADD COLUMN folded_keys text,
    ADD COLUMN folded_secondary_keys text
-- ;;
ALTER TABLE memory ADD COLUMN folded_text text
-- ;;
-- What is searched of an entry.
CREATE FUNCTION lore_words(l lore) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(l.folded_title, l.title) || ' ' || coalesce(l.folded_tags, l.tags::text) || ' ' || coalesce(l.folded_keys, l.keys::text)
        || ' ' || coalesce(l.folded_secondary_keys, l.secondary_keys::text) || ' ' || coalesce(l.folded_content, l.content)
$$
-- ;;
ALTER TABLE lore DROP COLUMN search
-- ;;
ALTER TABLE lore ADD COLUMN search tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(
    coalesce(folded_title, title) || ' ' || coalesce(folded_tags, tags::text) || ' ' || coalesce(folded_keys, keys::text) || ' '
    || coalesce(folded_secondary_keys, secondary_keys::text) || ' ' || coalesce(folded_content, content), 200000))) STORED
-- ;;
CREATE INDEX lore_search ON lore USING gin (search)
-- ;;
ALTER TABLE memory DROP COLUMN search
-- ;;
ALTER TABLE memory ADD COLUMN search tsvector GENERATED ALWAYS AS (to_tsvector('simple', coalesce(folded_text, text))) STORED
-- ;;
CREATE INDEX memory_search ON memory USING gin (search)
-- ;;
-- Words as `websearch_to_tsquery` reads them. The last may be the beginning of one, if the words end with one: what is left out or
-- stands in brackets cannot be.
CREATE FUNCTION search_query(words text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE WHEN words ~ '\w$' AND q::text LIKE '%''' THEN (q::text || ':*')::tsquery ELSE q END
    FROM websearch_to_tsquery('simple', words) AS q
$$
-- ;;
-- Whether a text contains all of some texts and none of others.
CREATE FUNCTION contains_texts(content text, texts text[], lacked text[]) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM unnest(texts) AS t WHERE position(t IN content) = 0)
       AND NOT EXISTS (SELECT FROM unnest(lacked) AS t WHERE position(t IN content) > 0)
$$
-- ;;
DROP FUNCTION search_lore, search_memory
-- ;;
-- Full-text search behind row security: GIN operators are not leakproof, so a policy would keep their index unused. The tenant filter
-- is explicit and taken from the caller's transaction. `words`, `texts` and `lacked` are the parts of a query (`base::search::Query`);
-- without words only the texts decide.
CREATE FUNCTION search_lore(campaign uuid, words text, texts text[], lacked text[], rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    (SELECT t.id FROM lore t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND t.search @@ search_query(words)
       AND (texts = '{}' AND lacked = '{}' OR contains_texts(lore_words(t), texts, lacked)) LIMIT rows_max)
    UNION ALL
    (SELECT t.id FROM lore t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND words = '' AND (texts <> '{}' OR lacked <> '{}') AND contains_texts(lore_words(t), texts, lacked) LIMIT rows_max)
$$
-- ;;
CREATE FUNCTION search_memory(campaign uuid, words text, texts text[], lacked text[], rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    (SELECT t.id FROM memory t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND t.search @@ search_query(words)
       AND (texts = '{}' AND lacked = '{}' OR contains_texts(coalesce(t.folded_text, t.text), texts, lacked)) LIMIT rows_max)
    UNION ALL
    (SELECT t.id FROM memory t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND words = '' AND (texts <> '{}' OR lacked <> '{}') AND contains_texts(coalesce(t.folded_text, t.text), texts, lacked) LIMIT rows_max)
$$
-- ;;
-- The key of a title in links.
CREATE FUNCTION title_key(title text, folded text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT public.link_key(coalesce(pg_catalog.split_part(folded, E'\n', 1), title))
$$
-- ;;
DROP INDEX lore_title_key
-- ;;
CREATE INDEX lore_title_key ON lore (tenant_id, campaign_id, title_key(title, folded_title), id)
-- ;;
-- As before, in folded texts.
CREATE OR REPLACE FUNCTION keep_lore_links() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    content text := coalesce(NEW.folded_content, NEW.content);
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF content = coalesce(OLD.folded_content, OLD.content) THEN
            RETURN NULL;
        END IF;
        DELETE FROM lore_link WHERE tenant_id = NEW.tenant_id AND lore_id = NEW.id;
    END IF;
    IF position('[[' IN content) > 0 THEN
        INSERT INTO lore_link (tenant_id, campaign_id, lore_id, target)
        SELECT NEW.tenant_id, NEW.campaign_id, NEW.id, k FROM link_keys(content) AS k;
    END IF;
    RETURN NULL;
END $$
-- ;;
DROP TRIGGER d_links ON lore
-- ;;
CREATE TRIGGER d_links AFTER INSERT OR UPDATE OF content, folded_content ON lore FOR EACH ROW EXECUTE FUNCTION keep_lore_links()
-- ;;
-- As before; names are folded.
CREATE OR REPLACE FUNCTION linked_names(campaign uuid, names text[]) RETURNS TABLE (nth int, kind text, id uuid) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT n::int, found.kind, found.id
    FROM unnest(names) WITH ORDINALITY AS named (name, n)
    CROSS JOIN LATERAL (
        SELECT by_key.kind, by_key.id
        FROM (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid AS tenant, link_key(name) AS whole) t
        CROSS JOIN LATERAL (SELECT t.whole AS key, 1 AS rank UNION ALL
            SELECT btrim(split_part(t.whole, '#', 1)), 2 WHERE position('#' IN t.whole) > 1) k
        CROSS JOIN LATERAL (
            SELECT 'lore' AS kind, by_name.id FROM (
                (SELECT l.id FROM lore l WHERE l.tenant_id = t.tenant AND l.campaign_id = campaign AND title_key(l.title, l.folded_title) = k.key
                 ORDER BY l.id LIMIT 1)
                UNION ALL
                SELECT l.id FROM lore l WHERE l.tenant_id = t.tenant AND l.campaign_id = campaign AND l.slug = k.key) by_name
            UNION ALL
            SELECT a.kind, a.actor_id FROM actor_slug a WHERE a.tenant_id = t.tenant AND a.campaign_id = campaign
              AND a.slug IN (k.key, replace(k.key, ' ', '_'))
            LIMIT 1) by_key
        ORDER BY k.rank LIMIT 1) found
$$
-- ;;
CREATE OR REPLACE FUNCTION linking_lore(campaign uuid, name text) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT l.lore_id FROM lore_link l
    CROSS JOIN LATERAL (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid AS tenant, link_key(name) AS key) k
    WHERE l.tenant_id = k.tenant AND l.campaign_id = campaign AND (l.target = k.key OR (l.page = k.key
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND title_key(o.title, o.folded_title) = l.target)
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND o.slug = l.target)))
$$
-- ;;
-- As before, but what is generated for searches is in no image.
CREATE OR REPLACE FUNCTION journal_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    any_row jsonb := coalesce(new_row, old_row);
    tenant uuid := any_row ->> 'tenant_id';
    campaign uuid := coalesce(any_row ->> 'campaign_id', any_row ->> 'id');
    who text[] := string_to_array(current_setting('app.who', true), '|');
    is_user boolean := coalesce(starts_with(who[2], 'user:'), false);
    feed text[] := string_to_array(current_setting('app.feed', true), ':');
    begins boolean := feed[1] IS DISTINCT FROM campaign::text;
    rows_now bigint := CASE WHEN begins THEN 1 ELSE feed[3]::bigint + 1 END;
    number bigint := feed[2]::bigint + 1;
    what text := lower(TG_OP);
    done text;
BEGIN
    IF TG_TABLE_NAME IN ('lore', 'memory') THEN
        old_row := old_row - 'search';
        new_row := new_row - 'search';
    END IF;
    IF current_setting('app.removing', true) = 'on' THEN
        IF TG_OP = 'DELETE' THEN
            RETURN NULL;
        ELSIF TG_TABLE_NAME = 'campaign' THEN
            what := 'delete';
            new_row := NULL;
        END IF;
    END IF;
    IF begins THEN
        IF feed[3]::bigint > 2 THEN
            UPDATE public.feed_head SET seq = feed[2]::bigint WHERE tenant_id = tenant AND campaign_id = feed[1]::uuid;
        END IF;
        -- An assignment is an expression; PERFORM would be a statement.
        done := (pg_advisory_xact_lock(hashtextextended(campaign::text, 0)) IS NULL)::text;
    END IF;
    IF rows_now <= 2 THEN
        UPDATE public.feed_head SET seq = seq + 1 WHERE tenant_id = tenant AND campaign_id = campaign RETURNING seq INTO number;
        IF NOT FOUND THEN
            INSERT INTO public.feed_head (tenant_id, campaign_id, seq) VALUES (tenant, campaign, 1);
            number := 1;
        END IF;
    END IF;
    done := set_config('app.feed', campaign || ':' || number || ':' || rows_now, true);
    INSERT INTO public.journal (tenant_id, campaign_id, seq, table_name, row_id, op, before, after,
                                origin, key_id, user_id, turn_id, request_id, closes)
    VALUES (tenant, campaign, number, TG_TABLE_NAME, (any_row ->> 'id')::uuid, what, old_row, new_row,
            coalesce(nullif(who[1], ''), 'api'), CASE WHEN NOT is_user THEN nullif(who[2], '')::uuid END,
            CASE WHEN is_user THEN substr(who[2], 6)::uuid END, nullif(who[3], '')::uuid,
            nullif(array_to_string(who[4:], '|'), ''), rows_now = 3);
    RETURN NULL;
END $$
-- ;;
-- As before, and what is folded goes back with what it is of.
CREATE OR REPLACE FUNCTION revert_plan(entry journal, now_row jsonb, but_of uuid, OUT wanted jsonb, OUT column_names text[], OUT reason text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    derived text[] := '{version,updated_at,search,folded_text,folded_title,folded_content,folded_tags,folded_keys,folded_secondary_keys}';
    col text;
BEGIN
    column_names := '{}';
    IF entry.redacted_at IS NOT NULL THEN
        reason := 'redacted';
    ELSIF entry.op = 'insert' THEN
        IF now_row IS NULL THEN
            reason := 'gone';
        -- What is searched for follows from the rest.
        ELSIF now_row - derived IS DISTINCT FROM entry.after - derived THEN
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
-- As before; what is folded of a text with such words goes as well.
CREATE OR REPLACE FUNCTION erase_columns(image jsonb, columns jsonb, pattern text, phrases text[], kept text[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
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
END $$
-- ;;
REVOKE ALL ON FUNCTION lore_words, search_query, contains_texts, search_lore, search_memory, title_key FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION lore_words, search_query, contains_texts, search_lore, search_memory, title_key TO tavernkeep_app
