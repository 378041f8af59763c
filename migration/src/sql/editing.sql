-- Editing: a comment of two semicolons ends each statement.

-- How names are compared in links: without case, and spaces are one space. Without a search path of its own it is inlined.
CREATE FUNCTION link_key(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.lower(pg_catalog.btrim(pg_catalog.regexp_replace(name, '\s+', ' ', 'g')))
$$
-- ;;
-- What `[[name]]` and `[[name|words]]` in a text link to; the first 500.
CREATE FUNCTION link_keys(content text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT public.link_key(m[1]) FROM regexp_matches(content, '\[\[([^][|\n]{1,200})(?:\|[^][|\n]{0,200})?\]\]', 'g') AS m
    WHERE public.link_key(m[1]) <> '' LIMIT 500
$$
-- ;;
CREATE FUNCTION keep_lore_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.content = OLD.content THEN
            RETURN NULL;
        END IF;
        DELETE FROM lore_link WHERE tenant_id = NEW.tenant_id AND lore_id = NEW.id;
    END IF;
    IF position('[[' IN NEW.content) > 0 THEN
        INSERT INTO lore_link (tenant_id, campaign_id, lore_id, target)
        SELECT NEW.tenant_id, NEW.campaign_id, NEW.id, k FROM link_keys(NEW.content) AS k;
    END IF;
    RETURN NULL;
END $$
-- ;;
-- What names in links stand for: a lore entry of this title or slug, else a character, NPC or owner of this slug, with spaces
-- for its underscores too. Behind row security, whose policies would keep the index on titles unused.
CREATE FUNCTION linked_names(campaign uuid, names text[]) RETURNS TABLE (nth int, kind text, id uuid) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT n::int, found.kind, found.id
    FROM unnest(names) WITH ORDINALITY AS named (name, n)
    CROSS JOIN LATERAL (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid AS tenant, link_key(name) AS key) k
    CROSS JOIN LATERAL (
        SELECT 'lore' AS kind, by_name.id FROM (
            (SELECT l.id FROM lore l WHERE l.tenant_id = k.tenant AND l.campaign_id = campaign AND link_key(l.title) = k.key
             ORDER BY l.id LIMIT 1)
            UNION ALL
            SELECT l.id FROM lore l WHERE l.tenant_id = k.tenant AND l.campaign_id = campaign AND l.slug = k.key) by_name
        UNION ALL
        SELECT a.kind, a.actor_id FROM actor_slug a WHERE a.tenant_id = k.tenant AND a.campaign_id = campaign
          AND a.slug IN (k.key, replace(k.key, ' ', '_'))
        LIMIT 1) found
$$
-- ;;
-- Entries of the tenant with a tag; array operators are not leakproof either.
CREATE FUNCTION tagged_lore(tag text) RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT id FROM lore
    WHERE tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND tags @> jsonb_build_array(tag)
$$
-- ;;
-- Takes one row of the journal back, as a forward write: what it returns stood in the way, and nothing of it is done then.
-- A column is put back if it still holds what was left in it; `hp`, `temp_hp` and `influence_current` go back by their
-- difference. Who has memories since, or has spoken, does not go: that would go as well. `gone` is no conflict: a new row that
-- somebody else has taken away already.
CREATE FUNCTION revert_entry(entry journal) RETURNS TABLE (table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    now_row jsonb;
    wanted jsonb := '{}';
    col text;
    cols text;
BEGIN
    table_name := entry.table_name;
    row_id := entry.row_id;
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE tenant_id = $1 AND id = $2 FOR UPDATE', entry.table_name)
        INTO now_row USING tenant, entry.row_id;
    IF entry.op = 'insert' THEN
        IF now_row IS NULL THEN
            reason := 'gone';
            RETURN NEXT;
            RETURN;
        END IF;
        IF now_row - 'version' - 'updated_at' IS DISTINCT FROM entry.after - 'version' - 'updated_at' THEN
            reason := 'changed_since';
            RETURN NEXT;
            RETURN;
        END IF;
        IF entry.table_name IN ('character', 'npc', 'owner') AND (
            EXISTS (SELECT 1 FROM memory m WHERE m.tenant_id = tenant AND (m.holder_id = entry.row_id OR m.subject_id = entry.row_id))
            OR EXISTS (SELECT 1 FROM message m WHERE m.tenant_id = tenant AND m.player_id = entry.row_id)) THEN
            reason := 'used_since';
            RETURN NEXT;
            RETURN;
        END IF;
        EXECUTE format('DELETE FROM %I WHERE tenant_id = $1 AND id = $2', entry.table_name) USING tenant, entry.row_id;
    ELSIF entry.op = 'update' THEN
        IF now_row IS NULL THEN
            reason := 'deleted_since';
            RETURN NEXT;
            RETURN;
        END IF;
        FOR col IN SELECT k FROM jsonb_object_keys(entry.after) AS k
                   WHERE entry.after -> k IS DISTINCT FROM entry.before -> k AND k NOT IN ('version', 'updated_at', 'search') LOOP
            IF col IN ('hp', 'temp_hp', 'influence_current') THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, (now_row ->> col)::numeric
                    + (entry.before ->> col)::numeric - (entry.after ->> col)::numeric));
            ELSIF now_row -> col IS NOT DISTINCT FROM entry.after -> col THEN
                wanted := wanted || jsonb_build_object(col, entry.before -> col);
            ELSE
                column_name := col;
                reason := 'changed_since';
                RETURN NEXT;
            END IF;
        END LOOP;
        IF wanted <> '{}' THEN
            SELECT string_agg(format('%I = r.%I', k, k), ', ') INTO cols FROM jsonb_object_keys(wanted) AS k
            WHERE k IN (SELECT attname FROM pg_attribute WHERE attrelid = entry.table_name::regclass
                        AND attnum > 0 AND attgenerated = '' AND NOT attisdropped);
            EXECUTE format('UPDATE %1$I t SET %2$s FROM jsonb_populate_record(NULL::%1$I, $3) r '
                           'WHERE t.tenant_id = $1 AND t.id = $2', entry.table_name, cols)
                USING tenant, entry.row_id, now_row || wanted;
        END IF;
    ELSIF now_row IS NOT NULL THEN
        reason := 'created_since';
        RETURN NEXT;
    ELSE
        PERFORM restore_row(entry.table_name, entry.row_id, entry.before);
    END IF;
END $$
-- ;;
-- The same for a stretch of a campaign's journal.
CREATE FUNCTION revert_step(campaign uuid, first_seq bigint, last_seq bigint) RETURNS TABLE (
    table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    entry journal;
BEGIN
    FOR entry IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.campaign_id = campaign
                 AND j.seq BETWEEN first_seq AND last_seq ORDER BY j.seq DESC LOOP
        RETURN QUERY SELECT * FROM revert_entry(entry);
    END LOOP;
END $$
-- ;;
-- Writes an older content over a row that is there. What influence regenerates is counted from the present stamp on.
CREATE FUNCTION restore_revision(target text, target_id uuid, content jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    cols text;
BEGIN
    SELECT string_agg(format('%1$I = r.%1$I', attname), ', ') INTO cols FROM pg_attribute
    WHERE attrelid = target::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped AND content ? attname
      AND attname NOT IN ('tenant_id', 'id', 'campaign_id', 'version', 'created_at', 'updated_at', 'influence_at');
    EXECUTE format('UPDATE %1$I t SET %2$s FROM jsonb_populate_record(NULL::%1$I, $3) r '
                   'WHERE t.tenant_id = $1 AND t.id = $2', target, cols)
        USING tenant, target_id, content;
END $$
-- ;;
-- Steps whose journal is pruned can no longer be undone.
CREATE FUNCTION prune_edit_steps(rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT s.tenant_id, s.id FROM edit_step s
        JOIN feed_head h ON h.tenant_id = s.tenant_id AND h.campaign_id = s.campaign_id
        WHERE s.first_seq <= h.pruned_seq LIMIT rows_max)
    DELETE FROM edit_step s USING old WHERE s.tenant_id = old.tenant_id AND s.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$
