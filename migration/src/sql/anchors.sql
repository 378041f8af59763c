-- Links to a part of a page: a comment of two semicolons ends each statement.

-- What `[[name]]` and `[[name|words]]` in a text link to; the first 500. In a table of Markdown the bar is written `\|`. A name that
-- begins with `#` is a part of the same page.
CREATE OR REPLACE FUNCTION link_keys(content text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT key FROM regexp_matches(content, '\[\[([^][|\n]{1,200})(\|[^][|\n]{0,200})?\]\]', 'g') AS m
    CROSS JOIN LATERAL (SELECT public.link_key(CASE WHEN m[2] IS NULL THEN m[1] ELSE regexp_replace(m[1], '\\$', '') END)) k (key)
    WHERE key <> '' AND key NOT LIKE '#%' LIMIT 500
$$
-- ;;
-- The page of a target: what stands before the first `#`.
ALTER TABLE lore_link ADD COLUMN page text NOT NULL GENERATED ALWAYS AS (btrim(split_part(target, '#', 1))) STORED
-- ;;
CREATE INDEX lore_link_page ON lore_link (tenant_id, campaign_id, page, lore_id)
-- ;;
DELETE FROM lore_link k USING lore l WHERE l.tenant_id = k.tenant_id AND l.id = k.lore_id AND position('\|' IN l.content) > 0
-- ;;
DELETE FROM lore_link WHERE target LIKE '#%'
-- ;;
INSERT INTO lore_link (tenant_id, campaign_id, lore_id, target)
SELECT l.tenant_id, l.campaign_id, l.id, k FROM lore l, link_keys(l.content) AS k WHERE position('\|' IN l.content) > 0
-- ;;
-- As before, and a name with a `#` that nothing has stands for the page before it.
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
                (SELECT l.id FROM lore l WHERE l.tenant_id = t.tenant AND l.campaign_id = campaign AND link_key(l.title) = k.key
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
-- The entries of a campaign that link to a page of this name. A link with a `#` is one to the page before it, unless something has its
-- whole name.
CREATE FUNCTION linking_lore(campaign uuid, name text) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT l.lore_id FROM lore_link l
    CROSS JOIN LATERAL (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid AS tenant, link_key(name) AS key) k
    WHERE l.tenant_id = k.tenant AND l.campaign_id = campaign AND (l.target = k.key OR (l.page = k.key
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND link_key(o.title) = l.target)
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND o.slug = l.target)))
$$
-- ;;
REVOKE ALL ON FUNCTION linking_lore(uuid, text) FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION linking_lore(uuid, text) TO tavernkeep_app
