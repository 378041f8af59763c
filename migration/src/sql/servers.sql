-- How servers say that they are alive. A turn, a reaction or a connection whose server has died is taken over by another one.

-- Whether a server lives: it holds the advisory lock of its number as long as it does.
CREATE FUNCTION server_lives(server bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.objid::bigint = server
        AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
$$;

-- The servers that hold their locks. After PostgreSQL was started, a server that lives may not have taken its lock again yet. The instance
-- -1 is the queue of reactions, which always lives.
CREATE FUNCTION servers_alive() RETURNS TABLE (instance bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT l.objid::bigint FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL SELECT -1
$$;

-- Whether a lease by itself says that a server lives. It lives for 20 seconds and is renewed every two, and a server that lost its lock takes
-- it again as soon: so the lock decides when the lease was not renewed for three seconds. It also decides over a longer lease, which a turn
-- gives itself for a large batch: that says nothing of the server. Just after the database itself was started every
-- lock is gone, and the lease alone decides; for the first ten seconds nobody has had the time to renew one that ran out meanwhile.
CREATE FUNCTION lease_is_enough(lease_until timestamptz) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT lease_until BETWEEN now() + interval '17 seconds' AND now() + interval '25 seconds'
        OR lease_until >= now() AND pg_postmaster_start_time() > now() - interval '20 seconds'
        OR pg_postmaster_start_time() > now() - interval '10 seconds'
$$;
