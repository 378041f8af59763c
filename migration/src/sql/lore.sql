-- Lore: its entries, the links between them, and how they are searched.

CREATE TABLE lore (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    title text NOT NULL,
    scope text NOT NULL,
    associated_id text,
    associated_key text NOT NULL,
    content text NOT NULL,
    tags jsonb NOT NULL,
    priority int NOT NULL,
    enabled boolean NOT NULL,
    secret boolean NOT NULL,
    known_by uuid[] NOT NULL,
    activation text NOT NULL,
    keys jsonb NOT NULL,
    secondary_keys jsonb NOT NULL,
    logic text NOT NULL,
    scan_depth int NOT NULL,
    ai_lock boolean NOT NULL,
    tokens int NOT NULL,
    -- `folded_x` is `x` without differences of case, composition and typography, followed by a line with the pairs and single letters of
    -- its scripts without spaces (`base::search`). It is null for a text in ASCII, and after an erasure until the server has written it again;
    -- then `x` itself is searched.
    folded_title text,
    folded_content text,
    folded_tags text,
    folded_keys text,
    folded_secondary_keys text,
    search tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(
        coalesce(folded_title, title) || ' ' || coalesce(folded_tags, tags::text) || ' ' || coalesce(folded_keys, keys::text) || ' '
        || coalesce(folded_secondary_keys, secondary_keys::text) || ' ' || coalesce(folded_content, content), 200000))) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT lore_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('lore', 'world');
CREATE INDEX lore_list ON lore (tenant_id, campaign_id, id);
CREATE INDEX lore_priority ON lore (tenant_id, campaign_id, priority, id);
CREATE INDEX lore_scope ON lore (tenant_id, campaign_id, scope, associated_key, activation, priority DESC, id) WHERE enabled;
CREATE INDEX lore_search ON lore USING gin (search);
CREATE INDEX lore_tags ON lore USING gin (tags jsonb_path_ops);
CREATE INDEX lore_title ON lore (tenant_id, campaign_id, title COLLATE natural_order, id);
CREATE INDEX lore_tokens ON lore (tenant_id, campaign_id, tokens, id);
CREATE INDEX lore_totals ON lore (tenant_id, campaign_id, scope, enabled, secret, activation) INCLUDE (tokens);
CREATE INDEX lore_updated ON lore (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX lore_external_ref_key ON lore (tenant_id, campaign_id, external_ref);
CREATE UNIQUE INDEX lore_slug_key ON lore (tenant_id, campaign_id, slug);

-- What the `[[links]]` in an entry's content name, as `link_key` writes it. A trigger keeps it.
CREATE TABLE lore_link (
    tenant_id uuid NOT NULL,
    lore_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    target text NOT NULL,
    -- The page of a target: the part before the first `#`.
    page text NOT NULL GENERATED ALWAYS AS (btrim(split_part(target, '#', 1))) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, lore_id, target),
    CONSTRAINT lore_link_lore_id_fkey FOREIGN KEY (tenant_id, lore_id) REFERENCES lore (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('lore_link', 'system');
CREATE INDEX lore_link_page ON lore_link (tenant_id, campaign_id, page, lore_id);
CREATE INDEX lore_link_target ON lore_link (tenant_id, campaign_id, target, lore_id);

-- The key of a title in links.
CREATE FUNCTION title_key(title text, folded text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT public.link_key(coalesce(pg_catalog.split_part(folded, E'\n', 1), title))
$$;

-- How names are compared in links: without case, and spaces are one space. Without a search path of its own it is inlined. Few names
-- have spaces to replace, and to look for them costs a fifth of replacing them.
CREATE FUNCTION link_key(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.lower(pg_catalog.btrim(
        CASE WHEN name OPERATOR(pg_catalog.~) '\s\s|[^\S ]' THEN pg_catalog.regexp_replace(name, '\s+', ' ', 'g') ELSE name END))
$$;

-- What `[[name]]` and `[[name|words]]` in a text link to; the first 500. In a table of Markdown the bar is written `\|`. A name that
-- begins with `#` is a part of the same page.
CREATE FUNCTION link_keys(content text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT key FROM regexp_matches(content, '\[\[([^][|\n]{1,200})(\|[^][|\n]{0,200})?\]\]', 'g') AS m
    CROSS JOIN LATERAL (SELECT public.link_key(CASE WHEN m[2] IS NULL THEN m[1] ELSE regexp_replace(m[1], '\\$', '') END)) k (key)
    WHERE key <> '' AND key NOT LIKE '#%' LIMIT 500
$$;

-- Keeps `lore_link` up to date with the content of an entry, folded if it has a folded form.
CREATE FUNCTION keep_lore_links() RETURNS trigger LANGUAGE plpgsql AS $$
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
END $$;

-- What names in links stand for: a lore entry with this title or slug, otherwise a character, NPC or owner with this slug, with spaces for
-- its underscores too. If nothing has a name with a `#`, it stands for the page before the `#`. Names are compared folded. The function
-- goes around row security, whose policies would keep the index on titles unused, and filters by the caller's tenant itself.
CREATE FUNCTION linked_names(campaign uuid, names text[]) RETURNS TABLE (nth int, kind text, id uuid) LANGUAGE sql STABLE
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
$$;

-- The entries of a campaign that link to a page of this name. A link with a `#` is one to the page before it, unless something has its
-- whole name.
CREATE FUNCTION linking_lore(campaign uuid, name text) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT l.lore_id FROM lore_link l
    CROSS JOIN LATERAL (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid AS tenant, link_key(name) AS key) k
    WHERE l.tenant_id = k.tenant AND l.campaign_id = campaign AND (l.target = k.key OR (l.page = k.key
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND title_key(o.title, o.folded_title) = l.target)
        AND NOT EXISTS (SELECT FROM lore o WHERE o.tenant_id = k.tenant AND o.campaign_id = campaign AND o.slug = l.target)))
$$;

-- Entries of the tenant with a tag. `@>` is not leakproof, so a policy would keep its index unused.
CREATE FUNCTION tagged_lore(tag text) RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT id FROM lore
    WHERE tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND tags @> jsonb_build_array(tag)
$$;

-- What is searched of an entry.
CREATE FUNCTION lore_words(l lore) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(l.folded_title, l.title) || ' ' || coalesce(l.folded_tags, l.tags::text) || ' ' || coalesce(l.folded_keys, l.keys::text)
        || ' ' || coalesce(l.folded_secondary_keys, l.secondary_keys::text) || ' ' || coalesce(l.folded_content, l.content)
$$;

-- Words as `websearch_to_tsquery` reads them. The last may be the beginning of one, if the words end with one: what is left out or
-- stands in brackets cannot be.
CREATE FUNCTION search_query(words text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE WHEN words ~ '\w$' AND q::text LIKE '%''' THEN (q::text || ':*')::tsquery ELSE q END
    FROM websearch_to_tsquery('simple', words) AS q
$$;

-- Whether a text contains all of some texts and none of others.
CREATE FUNCTION contains_texts(content text, texts text[], lacked text[]) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM unnest(texts) AS t WHERE position(t IN content) = 0)
       AND NOT EXISTS (SELECT FROM unnest(lacked) AS t WHERE position(t IN content) > 0)
$$;

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
$$;

CREATE INDEX lore_title_key ON lore (tenant_id, campaign_id, title_key(title, folded_title), id);

CREATE TRIGGER c_heads AFTER INSERT OR DELETE OR UPDATE ON lore FOR EACH ROW
    EXECUTE FUNCTION bump_heads('lore', 'scope,associated_key', '*');
CREATE TRIGGER c_kind_changed AFTER UPDATE ON lore FOR EACH ROW WHEN (((old.scope = ANY (ARRAY['creature', 'item'])) OR (new.scope = ANY (ARRAY['creature', 'item']))))
    EXECUTE FUNCTION bump_heads('lore', 'scope', '*');
CREATE TRIGGER c_kind_gone AFTER DELETE ON lore FOR EACH ROW WHEN ((old.scope = ANY (ARRAY['creature', 'item'])))
    EXECUTE FUNCTION bump_heads('lore', 'scope', '*');
CREATE TRIGGER c_kind_new AFTER INSERT ON lore FOR EACH ROW WHEN ((new.scope = ANY (ARRAY['creature', 'item'])))
    EXECUTE FUNCTION bump_heads('lore', 'scope', '*');
CREATE TRIGGER d_links AFTER INSERT OR UPDATE OF content, folded_content ON lore FOR EACH ROW
    EXECUTE FUNCTION keep_lore_links();
