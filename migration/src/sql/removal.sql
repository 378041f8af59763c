-- Deleting a campaign of any size. It disappears at once, and its rows are deleted in steps.

-- A deleted campaign whose rows are being deleted: how many are gone, and if the last attempt failed, its SQLSTATE, the number of
-- failures in a row, and when to try again.
CREATE TABLE campaign_removal (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    rows bigint NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    failed text,
    next_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, campaign_id),
    CONSTRAINT campaign_removal_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('campaign_removal', 'read-only');

-- Deletes a campaign: from the commit on nobody finds it, its turns are asked to stop, and its rows wait to be deleted. Returns the turns that
-- were under way. A turn whose row is locked is skipped; `campaign_remove` asks it again.
CREATE FUNCTION campaign_leave(its_campaign uuid) RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    PERFORM set_config('app.removing', 'on', true);
    UPDATE campaign c SET removed_at = now() WHERE c.tenant_id = tenant AND c.id = its_campaign AND c.removed_at IS NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO campaign_removal (tenant_id, campaign_id) VALUES (tenant, its_campaign);
    DELETE FROM bridge_connection b USING session s
    WHERE s.tenant_id = tenant AND s.campaign_id = its_campaign AND b.tenant_id = tenant AND b.session_id = s.id;
    RETURN QUERY UPDATE turn t SET cancel_requested = true WHERE t.tenant_id = tenant AND t.id IN (
        SELECT o.id FROM turn o WHERE o.tenant_id = tenant AND o.campaign_id = its_campaign AND (o.status = 'running' OR o.status = 'queued')
        FOR NO KEY UPDATE SKIP LOCKED) RETURNING t.id;
END $$;

-- The deleted campaigns whose rows are still there, the oldest first. `is_due`: whether it is time for the next step.
CREATE FUNCTION campaigns_leaving(rows_max int) RETURNS TABLE (tenant_id uuid, campaign_id uuid, attempts int, is_due boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT r.tenant_id, r.campaign_id, r.attempts, r.next_at <= now() FROM campaign_removal r ORDER BY r.next_at LIMIT rows_max
$$;

-- Deletes rows of a deleted campaign for about `millis` milliseconds, children before their parents, and the campaign itself last. Returns how
-- many, and whether it is done. No row if another server works on it. What is to be deleted, and in which order,
-- is read from the foreign keys. A row may take others along, and what that costs nobody knows before: a portion is as large as can be
-- expected to take 50 milliseconds by the one before it. After each attempt that failed it is at most half as large.
CREATE FUNCTION campaign_remove(its_tenant uuid, its_campaign uuid, millis int) RETURNS TABLE (gone bigint, is_done boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    until timestamptz := clock_timestamp() + millis * interval '1 millisecond';
    failed_before int;
    begun timestamptz;
    what regclass;
    portion int;
    went bigint;
BEGIN
    SELECT r.attempts INTO failed_before FROM campaign_removal r
    WHERE r.tenant_id = its_tenant AND r.campaign_id = its_campaign FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('app.tenant_id', its_tenant::text, true), set_config('app.removing', 'on', true);
    UPDATE turn t SET cancel_requested = true WHERE t.tenant_id = its_tenant AND t.id IN (
        SELECT o.id FROM turn o WHERE o.tenant_id = its_tenant AND o.campaign_id = its_campaign
          AND (o.status = 'running' OR o.status = 'queued') AND NOT o.cancel_requested FOR NO KEY UPDATE SKIP LOCKED);
    gone := 0;
    is_done := false;
    <<tables>>
    FOR what IN
        WITH RECURSIVE below (id, depth) AS (
            SELECT 'campaign'::regclass::oid, 0
            UNION
            SELECT k.conrelid, b.depth + 1 FROM below b JOIN pg_constraint k ON k.confrelid = b.id AND k.contype = 'f' AND k.conrelid <> b.id
            WHERE b.depth < 20)
        SELECT b.id::regclass FROM below b JOIN pg_attribute a ON a.attrelid = b.id AND a.attname = 'campaign_id' AND NOT a.attisdropped
        WHERE b.id <> 'campaign_removal'::regclass
        GROUP BY b.id ORDER BY max(b.depth) DESC, b.id LOOP
        portion := CASE failed_before WHEN 0 THEN 10 ELSE 1 END;
        LOOP
            begun := clock_timestamp();
            EXIT tables WHEN begun >= until AND gone > 0;
            EXECUTE format('DELETE FROM %1$s WHERE ctid = ANY (ARRAY('
                           'SELECT ctid FROM %1$s WHERE tenant_id = $1 AND campaign_id = $2 LIMIT $3))', what)
            USING its_tenant, its_campaign, portion;
            GET DIAGNOSTICS went = ROW_COUNT;
            gone := gone + went;
            EXIT WHEN went = 0;
            portion := greatest(1, least(2000 >> least(failed_before, 20),
                portion * 50 / greatest(1, extract(epoch FROM clock_timestamp() - begun) * 1000)))::int;
        END LOOP;
    END LOOP;
    IF gone = 0 THEN
        DELETE FROM campaign c WHERE c.tenant_id = its_tenant AND c.id = its_campaign;
        is_done := true;
    ELSE
        UPDATE campaign_removal r SET rows = r.rows + campaign_remove.gone, attempts = 0, failed = NULL, next_at = now()
        WHERE r.tenant_id = its_tenant AND r.campaign_id = its_campaign;
    END IF;
    RETURN NEXT;
END $$;

-- Stores that a step failed, with this SQLSTATE. The next step waits, longer each time, up to an hour. Other campaigns do not wait for it.
CREATE FUNCTION campaign_remove_failed(its_tenant uuid, its_campaign uuid, code text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE campaign_removal r SET attempts = r.attempts + 1, failed = code,
        next_at = now() + least(interval '1 hour', interval '5 seconds' * power(2, least(r.attempts, 12)))
    WHERE r.tenant_id = its_tenant AND r.campaign_id = its_campaign
$$;

-- Deletes the journal and the heads of campaigns that are gone; they have no foreign key. The feed's head is deleted last, because the rest is
-- found by it.
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
END $$;

-- A deleted campaign is invisible while its rows are being deleted.
ALTER POLICY tenant ON campaign
    USING (tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid) AND removed_at IS NULL);
