-- How a server's lock and the leases of its turns work together; a comment of two semicolons ends each statement.

-- Servers that hold their locks. After the database itself was started, those that live may be about to take theirs again.
CREATE FUNCTION servers_alive() RETURNS TABLE (instance bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT l.objid::bigint FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$
-- ;;
-- Whether a lease by itself says that a server lives. It lives for 20 seconds and is renewed every two, and a server that lost its lock takes
-- it again as soon: so the lock decides when the lease was not renewed for three seconds. It also decides over a longer lease, which a turn
-- gives itself for a large batch: that says nothing of the server. Just after the database itself was started every
-- lock is gone, and the lease alone decides; for the first ten seconds nobody has had the time to renew one that ran out meanwhile.
CREATE FUNCTION lease_is_enough(lease_until timestamptz) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT lease_until BETWEEN now() + interval '17 seconds' AND now() + interval '25 seconds'
        OR lease_until >= now() AND pg_postmaster_start_time() > now() - interval '20 seconds'
        OR pg_postmaster_start_time() > now() - interval '10 seconds'
$$
-- ;;
-- Whether nobody works on a turn any more: its lease ran out, or its server has neither renewed it of late nor holds its lock.
CREATE OR REPLACE FUNCTION turn_is_abandoned(lease_until timestamptz, instance bigint) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT NOT lease_is_enough(lease_until) AND (lease_until < now() OR NOT server_lives(instance))
$$
-- ;;
-- Turns that nobody works on any more and that may be tried now, one of each tenant before the second of any, and those that failed
-- least often before others.
CREATE OR REPLACE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (SELECT a.instance FROM servers_alive() a),
    unfinished AS (
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.status = 'running' OR t.status = 'queued'
        UNION ALL
        SELECT t.tenant_id, t.id, t.revert_tries, t.revert_try_at, t.lease_until, t.instance FROM turn t WHERE t.revert_as = 'undone')
    SELECT o.tenant_id, o.id FROM (
        SELECT u.*, row_number() OVER (PARTITION BY u.tenant_id ORDER BY u.revert_tries, u.lease_until, u.id) AS nth FROM unfinished u
        WHERE NOT lease_is_enough(u.lease_until) AND (u.lease_until < now() OR u.instance NOT IN (SELECT a.instance FROM alive a))
          AND (u.revert_try_at IS NULL OR u.revert_try_at <= now())) o
    ORDER BY o.nth, o.revert_tries, o.lease_until LIMIT rows_max
$$
-- ;;
-- What is being taken back, or waits for it, in the whole database: how many turns, how many of them failed at it, and for how many seconds the
-- oldest.
CREATE OR REPLACE FUNCTION reverts_waiting() RETURNS TABLE (turns bigint, failing bigint, oldest_seconds bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH alive AS MATERIALIZED (SELECT a.instance FROM servers_alive() a)
    SELECT count(*), count(*) FILTER (WHERE w.revert_tries > 0), coalesce(extract(epoch FROM now() - min(w.since))::bigint, 0) FROM (
        SELECT t.revert_tries, least(coalesce(t.revert_since, t.lease_until), now()) AS since FROM turn t
        WHERE (t.status = 'running' OR t.status = 'queued')
          AND (t.revert_as IS NOT NULL OR NOT lease_is_enough(t.lease_until)
              AND (t.lease_until < now() OR t.instance NOT IN (SELECT a.instance FROM alive a)))
        UNION ALL
        SELECT t.revert_tries, t.revert_since FROM turn t WHERE t.revert_as = 'undone') w
$$
-- ;;
-- A server says that its turns go on, and hears which of them someone wants cancelled, or are gone with their campaign. A turn that
-- holds its own row at this moment is alive as it is: nobody waits for it here, since the others' leases would run on.
CREATE OR REPLACE FUNCTION renew_leases(server bigint, turns uuid[], seconds int) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    WITH mine AS (
        SELECT id, cancel_requested FROM turn
        WHERE instance = server AND status IN ('queued', 'running') AND id = ANY (turns)),
    free AS (
        SELECT tenant_id, id FROM turn
        WHERE instance = server AND status IN ('queued', 'running') AND id = ANY (turns) FOR NO KEY UPDATE SKIP LOCKED),
    renewed AS (
        UPDATE turn t SET lease_until = now() + seconds * interval '1 second'
        FROM free f WHERE t.tenant_id = f.tenant_id AND t.id = f.id)
    SELECT t FROM unnest(turns) AS t WHERE NOT EXISTS (SELECT 1 FROM mine WHERE id = t AND NOT cancel_requested)
$$
-- ;;
REVOKE ALL ON FUNCTION servers_alive, lease_is_enough FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION servers_alive, lease_is_enough TO tavernkeep_app
