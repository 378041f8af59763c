-- A free slug: the first of `candidates` that nothing in its namespace has. Who asks for the same name waits until whoever has it
-- has written it or left it, so of many at once each gets one. `source` is the table that the slugs stand in: campaigns have theirs
-- in the tenant, everything else in its campaign. None if all are taken.
CREATE FUNCTION free_slug(its_tenant uuid, its_campaign uuid, source text, candidates text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    place text := CASE source WHEN 'campaign' THEN its_tenant::text ELSE its_campaign::text END;
    found text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('slug:%s:%s:%s', source, place, candidates[1]), 0));
    EXECUTE format(
        'SELECT c FROM unnest($1) WITH ORDINALITY AS wanted (c, n) WHERE NOT EXISTS (SELECT FROM %I t WHERE t.tenant_id = $2 AND %s = $3 '
        'AND t.slug = c) ORDER BY n LIMIT 1', source, CASE source WHEN 'campaign' THEN 't.tenant_id' ELSE 't.campaign_id' END)
        INTO found USING candidates, its_tenant, place::uuid;
    RETURN found;
END $$
-- ;;
REVOKE ALL ON FUNCTION free_slug FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION free_slug TO tavernkeep_app
