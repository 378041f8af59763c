-- Retention: each function forgets one portion and says how many rows that were. A comment of two semicolons ends each statement.

CREATE FUNCTION prune_usage(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT u.tenant_id, u.id FROM tenant t JOIN usage_entry u ON u.tenant_id = t.tenant_id AND u.created_at < now() - older_than
        LIMIT rows_max)
    DELETE FROM usage_entry u USING old WHERE u.tenant_id = old.tenant_id AND u.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$
-- ;;
-- Sessions of the editor that are over: by their end, or because nobody came for `idle_seconds`.
CREATE FUNCTION prune_editor_sessions(idle_seconds int, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM editor_session WHERE hash IN (
        SELECT s.hash FROM editor_session s
        WHERE s.expires_at < now() OR s.seen_at < now() - idle_seconds * interval '1 second' LIMIT rows_max);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$
-- ;;
-- A campaign goes with its history: the journal has no key to it, and is forgotten here. Its feed's head is the last to go, since it
-- is what the rest is found by.
CREATE FUNCTION prune_gone_campaigns(rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    feed record;
    rows bigint;
    gone bigint := 0;
BEGIN
    FOR feed IN SELECT h.tenant_id, h.campaign_id FROM feed_head h
                WHERE NOT EXISTS (SELECT FROM campaign c WHERE c.tenant_id = h.tenant_id AND c.id = h.campaign_id) LIMIT 100 LOOP
        DELETE FROM journal j WHERE j.tenant_id = feed.tenant_id AND j.campaign_id = feed.campaign_id AND j.seq IN (
            SELECT o.seq FROM journal o WHERE o.tenant_id = feed.tenant_id AND o.campaign_id = feed.campaign_id LIMIT rows_max - gone);
        GET DIAGNOSTICS rows = ROW_COUNT;
        gone := gone + rows;
        EXIT WHEN gone >= rows_max;
        DELETE FROM version_head v WHERE v.tenant_id = feed.tenant_id AND v.campaign_id = feed.campaign_id AND v.key IN (
            SELECT o.key FROM version_head o WHERE o.tenant_id = feed.tenant_id AND o.campaign_id = feed.campaign_id LIMIT rows_max - gone);
        GET DIAGNOSTICS rows = ROW_COUNT;
        gone := gone + rows;
        EXIT WHEN gone >= rows_max;
        DELETE FROM feed_head h WHERE h.tenant_id = feed.tenant_id AND h.campaign_id = feed.campaign_id;
    END LOOP;
    RETURN gone;
END $$
-- ;;
REVOKE ALL ON FUNCTION prune_usage, prune_editor_sessions, prune_gone_campaigns FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION prune_usage, prune_editor_sessions, prune_gone_campaigns TO tavernkeep_app
