-- Reactions are claimed by statements whose plans do not depend on statistics. A comment of two semicolons ends each statement.

-- A server takes waiting reactions, at most so many of each campaign and tenant. A reaction whose server died in every attempt is dead.
-- A plan that was made while the table was empty is kept for as long as the connection lives. So rows are found one by one under their
-- keys (LATERAL) and written where they were found (ctid); they are locked in between.
CREATE OR REPLACE FUNCTION claim_reactions(server bigint, lease_seconds int, rows_max int, per_campaign int, per_tenant int, tries_max int)
RETURNS TABLE (tenant_id uuid, id uuid, campaign_id uuid, kind text, entity_kind text, entity_id uuid, player_id uuid, score float8,
    actions int, message text, location_key text, turn_id uuid, turn_status text, tries int, limits jsonb, settings jsonb, tenant_version bigint,
    origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_advisory_xact_lock(1413567052, 1);
    UPDATE reaction r SET state = 'dead', finished_at = now(), error = '{"code": "lost", "message": "The server stopped during each attempt."}'
    WHERE r.ctid = ANY (ARRAY(
        SELECT l.ctid FROM reaction l WHERE l.state = 'running' AND l.lease_until < now() AND l.tries >= tries_max FOR UPDATE SKIP LOCKED));
    RETURN QUERY
    WITH RECURSIVE busy AS (
        SELECT r.tenant_id, r.campaign_id, count(*) AS at_work FROM reaction r
        WHERE r.state = 'running' AND r.lease_until >= now() GROUP BY 1, 2),
    busy_tenant AS (SELECT b.tenant_id, sum(b.at_work) AS at_work FROM busy b GROUP BY 1),
    waiting AS (
        (SELECT r.tenant_id, r.campaign_id FROM reaction r WHERE r.state = 'queued' ORDER BY 1, 2 LIMIT 1)
        UNION ALL
        SELECT n.tenant_id, n.campaign_id FROM waiting w CROSS JOIN LATERAL (
            SELECT r.tenant_id, r.campaign_id FROM reaction r
            WHERE r.state = 'queued' AND (r.tenant_id, r.campaign_id) > (w.tenant_id, w.campaign_id) ORDER BY 1, 2 LIMIT 1) n),
    due AS (
        SELECT q.* FROM waiting w CROSS JOIN LATERAL (
            SELECT r.tenant_id, r.campaign_id, r.id, r.due_at FROM reaction r
            WHERE r.tenant_id = w.tenant_id AND r.campaign_id = w.campaign_id AND r.state = 'queued' AND r.due_at <= now()
            ORDER BY r.due_at, r.id LIMIT per_campaign) q
        UNION ALL
        SELECT r.tenant_id, r.campaign_id, r.id, r.due_at FROM reaction r WHERE r.state = 'running' AND r.lease_until < now()),
    ready AS (
        SELECT d.tenant_id, d.id, d.due_at, coalesce(b.at_work, 0) + row_number()
            OVER (PARTITION BY d.tenant_id, d.campaign_id ORDER BY d.due_at, d.id) AS nth_of_campaign
        FROM due d LEFT JOIN busy b ON b.tenant_id = d.tenant_id AND b.campaign_id = d.campaign_id),
    fair AS (
        SELECT f.tenant_id, f.id, f.due_at, coalesce(t.at_work, 0) + row_number()
            OVER (PARTITION BY f.tenant_id ORDER BY f.nth_of_campaign, f.due_at) AS nth_of_tenant
        FROM ready f LEFT JOIN busy_tenant t ON t.tenant_id = f.tenant_id WHERE f.nth_of_campaign <= per_campaign),
    chosen AS MATERIALIZED (
        SELECT f.tenant_id, f.id FROM fair f JOIN tenant n ON n.tenant_id = f.tenant_id
        WHERE f.nth_of_tenant <= least(per_tenant, CASE coalesce((n.limits ->> 'concurrent_turns')::int, 64) WHEN 0 THEN per_tenant
            ELSE greatest(1, coalesce((n.limits ->> 'concurrent_turns')::int, 64) / 2) END)
        ORDER BY f.nth_of_tenant, f.due_at LIMIT rows_max),
    -- Whoever changes a reaction at this moment, or deletes its character, holds nobody else up.
    locked AS MATERIALIZED (
        SELECT l.place FROM chosen c CROSS JOIN LATERAL (
            SELECT r.ctid AS place FROM reaction r WHERE r.tenant_id = c.tenant_id AND r.id = c.id
              AND (r.state = 'queued' OR r.state = 'running' AND r.lease_until < now()) FOR UPDATE SKIP LOCKED) l),
    taken AS (
        UPDATE reaction r SET state = 'running', instance = server, lease_until = now() + lease_seconds * interval '1 second', tries = r.tries + 1
        WHERE r.ctid = ANY (ARRAY(SELECT l.place FROM locked l)) RETURNING r.*),
    turns AS (
        UPDATE turn t SET instance = server, lease_until = now() + lease_seconds * interval '1 second'
        WHERE t.ctid = ANY (ARRAY(SELECT l.place FROM taken k CROSS JOIN LATERAL (
            SELECT w.ctid AS place FROM turn w WHERE w.tenant_id = k.tenant_id AND w.id = k.turn_id AND w.status = 'queued' FOR NO KEY UPDATE) l))
        RETURNING t.id, t.cancel_requested)
    SELECT k.tenant_id, k.id, k.campaign_id, k.kind, k.entity_kind, k.entity_id, k.player_id, k.score::float8, k.actions, k.message, k.location_key,
        k.turn_id, CASE WHEN u.cancel_requested THEN 'cancelling' WHEN u.id IS NOT NULL THEN 'ready' ELSE coalesce(t.status, 'gone') END,
        k.tries, n.limits, n.settings, n.version, n.origins, n.llm_api_key, ARRAY(SELECT o.name FROM operator_switch o WHERE NOT o.enabled)
    FROM taken k JOIN tenant n ON n.tenant_id = k.tenant_id LEFT JOIN turns u ON u.id = k.turn_id
    LEFT JOIN LATERAL (SELECT w.status FROM turn w WHERE w.tenant_id = k.tenant_id AND w.id = k.turn_id) t ON true;
END $$
