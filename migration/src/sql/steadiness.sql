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
-- ;;
-- Turns whose server is gone: its lease ran out, or it no longer holds the advisory lock that says it lives. A server that lost the
-- lock with its connection takes it again within a second or two, and renews its leases then: a lease that was renewed in the
-- last three of its twenty seconds speaks for it. After a restart of PostgreSQL nobody has had the time for either.
CREATE OR REPLACE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id FROM turn t
    WHERE (t.status = 'running' OR t.status = 'queued') AND (t.lease_until < now() OR (t.lease_until < now() + interval '17 seconds'
        AND NOT EXISTS (
        SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.objid::bigint = t.instance
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))))
      AND pg_postmaster_start_time() < now() - interval '10 seconds'
    LIMIT rows_max
$$
