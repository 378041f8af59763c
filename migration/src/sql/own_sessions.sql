-- The sessions of whoever holds one; a comment of two semicolons ends each statement. Both run as the schema's owner and take the
-- hash of a secret that only its browser holds. A session is named by the first half of its own hash, of which no secret can be made.

CREATE FUNCTION session_list(its_hash bytea, idle_seconds int) RETURNS TABLE (
    name text, began_at timestamptz, seen_at timestamptz, is_this boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT encode(substring(s.hash FROM 1 FOR 16), 'hex'), s.created_at, s.seen_at, s.hash = its_hash
    FROM editor_session mine JOIN editor_session s ON s.user_id = mine.user_id
    WHERE mine.hash = its_hash AND mine.expires_at > now() AND s.expires_at > now()
      AND s.seen_at > now() - idle_seconds * interval '1 second'
    ORDER BY s.hash = its_hash DESC, s.seen_at DESC LIMIT 50
$$
-- ;;
CREATE FUNCTION session_end_named(its_hash bytea, named text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM editor_session s USING editor_session mine
    WHERE mine.hash = its_hash AND mine.expires_at > now() AND s.user_id = mine.user_id
      AND encode(substring(s.hash FROM 1 FOR 16), 'hex') = named;
    RETURN FOUND;
END $$
-- ;;
REVOKE ALL ON FUNCTION session_list, session_end_named FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION session_list, session_end_named TO tavernkeep_app
