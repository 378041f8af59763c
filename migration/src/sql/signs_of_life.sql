-- How a server's lock and the leases of its turns work together; a comment of two semicolons ends each statement.

-- Turns whose server is gone. A lease lives for 20 seconds and is renewed every two. It has run out, or its server has neither held
-- its lock nor renewed the lease for three seconds: a server that lives takes its lock again long before that. After the
-- database itself was started, servers may be about to come back, and leases alone decide.
CREATE OR REPLACE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id FROM turn t
    WHERE (t.status = 'running' OR t.status = 'queued') AND (t.lease_until < now() OR (
        t.lease_until < now() + interval '17 seconds' AND pg_postmaster_start_time() < now() - interval '20 seconds'
        AND NOT EXISTS (
            SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.objid::bigint = t.instance
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))))
    LIMIT rows_max
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
