-- Bulk edits, and files that wait to be imported.

-- A bulk edit: a stretch of the campaign's journal that is undone as one.
CREATE TABLE edit_step (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    author uuid,
    what text NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    rows int NOT NULL,
    undone_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT edit_step_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('edit_step', 'system');
CREATE INDEX edit_step_list ON edit_step (tenant_id, campaign_id, id);

-- A file that a user looks at before it is imported.
CREATE TABLE pending_import (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    name text NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id),
    CONSTRAINT pending_import_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('pending_import', 'system');
ALTER TABLE pending_import ALTER bytes SET STORAGE EXTERNAL;
CREATE INDEX pending_import_age ON pending_import (tenant_id, created_at);

-- Reverts a stretch of a campaign's journal, newest entry first. Returns what prevents it, as `revert_entry` does.
CREATE FUNCTION revert_step(campaign uuid, first_seq bigint, last_seq bigint) RETURNS TABLE (
    table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    entry journal;
BEGIN
    FOR entry IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.campaign_id = campaign
                 AND j.seq BETWEEN first_seq AND last_seq ORDER BY j.seq DESC LOOP
        RETURN QUERY SELECT * FROM revert_entry(entry);
    END LOOP;
END $$;

-- Deletes bulk edits that cannot be undone any more, because their journal is pruned.
CREATE FUNCTION prune_edit_steps(rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT s.tenant_id, s.id FROM edit_step s
        JOIN feed_head h ON h.tenant_id = s.tenant_id AND h.campaign_id = s.campaign_id
        WHERE s.first_seq <= h.pruned_seq LIMIT rows_max)
    DELETE FROM edit_step s USING old WHERE s.tenant_id = old.tenant_id AND s.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- Deletes files that nobody imported within an hour.
CREATE FUNCTION prune_pending_imports() RETURNS void LANGUAGE sql SECURITY DEFINER 
SET search_path = pg_catalog, public, pg_temp AS $$
         DELETE FROM pending_import p USING tenant t
         WHERE p.tenant_id = t.tenant_id AND p.created_at < now() - interval '1 hour'
     $$;
