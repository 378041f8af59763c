-- How a campaign of any size is deleted: it leaves at once for everybody, and its rows go in steps. A comment of two semicolons ends
-- each statement.

-- A campaign that has left is nobody's: its row is there until the last of its rows is gone, but no tenant sees it, and its names are
-- free for another one.
ALTER TABLE campaign ADD COLUMN removed_at timestamptz
-- ;;
DROP POLICY tenant ON campaign
-- ;;
CREATE POLICY tenant ON campaign TO tavernkeep_app
    USING (tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid) AND removed_at IS NULL)
    WITH CHECK (tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid))
-- ;;
DROP INDEX campaign_slug_key, campaign_external_ref_key
-- ;;
CREATE UNIQUE INDEX campaign_slug_key ON campaign (tenant_id, slug) WHERE removed_at IS NULL
-- ;;
CREATE UNIQUE INDEX campaign_external_ref_key ON campaign (tenant_id, external_ref) WHERE removed_at IS NULL
-- ;;
-- No prompt that was made of a campaign outlives it.
DROP TRIGGER c_heads ON campaign
-- ;;
CREATE TRIGGER c_heads AFTER UPDATE ON campaign FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'campaign', 'id', 'name,description,settings,slug,removed_at', 'clock', 'id', 'game_time')
-- ;;
-- The same as before, but for a campaign that leaves (`app.removing`): it is told of as one row that was deleted, and of what was in it
-- nothing is told when it goes.
CREATE OR REPLACE FUNCTION journal_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    any_row jsonb := coalesce(new_row, old_row);
    tenant uuid := any_row ->> 'tenant_id';
    campaign uuid := coalesce(any_row ->> 'campaign_id', any_row ->> 'id');
    who text[] := string_to_array(current_setting('app.who', true), '|');
    is_user boolean := coalesce(starts_with(who[2], 'user:'), false);
    feed text[] := string_to_array(current_setting('app.feed', true), ':');
    begins boolean := feed[1] IS DISTINCT FROM campaign::text;
    rows_now bigint := CASE WHEN begins THEN 1 ELSE feed[3]::bigint + 1 END;
    number bigint := feed[2]::bigint + 1;
    what text := lower(TG_OP);
    done text;
BEGIN
    IF current_setting('app.removing', true) = 'on' THEN
        IF TG_OP = 'DELETE' THEN
            RETURN NULL;
        ELSIF TG_TABLE_NAME = 'campaign' THEN
            what := 'delete';
            new_row := NULL;
        END IF;
    END IF;
    IF begins THEN
        IF feed[3]::bigint > 2 THEN
            UPDATE public.feed_head SET seq = feed[2]::bigint WHERE tenant_id = tenant AND campaign_id = feed[1]::uuid;
        END IF;
        -- An assignment is an expression; PERFORM would be a statement.
        done := (pg_advisory_xact_lock(hashtextextended(campaign::text, 0)) IS NULL)::text;
    END IF;
    IF rows_now <= 2 THEN
        UPDATE public.feed_head SET seq = seq + 1 WHERE tenant_id = tenant AND campaign_id = campaign RETURNING seq INTO number;
        IF NOT FOUND THEN
            INSERT INTO public.feed_head (tenant_id, campaign_id, seq) VALUES (tenant, campaign, 1);
            number := 1;
        END IF;
    END IF;
    done := set_config('app.feed', campaign || ':' || number || ':' || rows_now, true);
    INSERT INTO public.journal (tenant_id, campaign_id, seq, table_name, row_id, op, before, after,
                                origin, key_id, user_id, turn_id, request_id, closes)
    VALUES (tenant, campaign, number, TG_TABLE_NAME, (any_row ->> 'id')::uuid, what, old_row, new_row,
            coalesce(nullif(who[1], ''), 'api'), CASE WHEN NOT is_user THEN nullif(who[2], '')::uuid END,
            CASE WHEN is_user THEN substr(who[2], 6)::uuid END, nullif(who[3], '')::uuid,
            nullif(array_to_string(who[4:], '|'), ''), rows_now = 3);
    RETURN NULL;
END $$
-- ;;
-- A campaign leaves: from the commit on nobody finds it, its turns are asked to stop, and what was in it waits to go. Its turns that
-- were under way. A turn that holds its row writes just now; it is asked again when the rows go.
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
END $$
-- ;;
-- The campaigns whose rows are to go, those first that have waited longest; `is_due` if it is time to go on.
CREATE FUNCTION campaigns_leaving(rows_max int) RETURNS TABLE (tenant_id uuid, campaign_id uuid, attempts int, is_due boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT r.tenant_id, r.campaign_id, r.attempts, r.next_at <= now() FROM campaign_removal r ORDER BY r.next_at LIMIT rows_max
$$
-- ;;
-- Deletes rows of a campaign that has left for about `millis` milliseconds, children before their parents; says how many went, and
-- whether it is done: the campaign itself goes last. No row if another server is at it. What is to be deleted, and in which order,
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
    WHERE r.tenant_id = its_tenant AND r.campaign_id = its_campaign FOR UPDATE SKIP LOCKED;
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
END $$
-- ;;
-- A step failed, with this SQLSTATE: the next one waits, longer each time up to an hour. Others do not wait for it.
CREATE FUNCTION campaign_remove_failed(its_tenant uuid, its_campaign uuid, code text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE campaign_removal r SET attempts = r.attempts + 1, failed = code,
        next_at = now() + least(interval '1 hour', interval '5 seconds' * power(2, least(r.attempts, 12)))
    WHERE r.tenant_id = its_tenant AND r.campaign_id = its_campaign
$$
-- ;;
-- The campaigns that were copied from one, and copies of those, with the copy of a character in each; also those that have left: their
-- rows may still be there.
CREATE FUNCTION erase_forks(its_campaign uuid, its_character uuid, rows_max int) RETURNS TABLE (id uuid, character_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE copy AS (
        SELECT its_campaign AS id, its_character AS character_id, ARRAY[its_campaign] AS path
        UNION ALL
        SELECT c.id, fork_id(o.character_id, ('x' || substr(c.id::text, 20, 4) || substr(c.id::text, 25, 4))::bit(32)::bigint & 1073741823,
                             ('x' || right(c.id::text, 8))::bit(32)::bigint), o.path || c.id
        FROM copy o JOIN campaign c ON c.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid
            AND c.forked_from ->> 'campaign_id' = o.id::text AND c.forked_from IS NOT NULL
        WHERE c.id <> ALL (o.path))
    SELECT copy.id, copy.character_id FROM copy WHERE copy.id <> its_campaign LIMIT rows_max
$$
-- ;;
-- Whether the character that a token plays is still there, and the visit to the table that it is has not ended.
CREATE OR REPLACE FUNCTION token_stands(its_tenant uuid, who text, player uuid, visit uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    RETURN (player IS NULL OR EXISTS (
            SELECT FROM character c JOIN campaign w ON w.tenant_id = its_tenant AND w.id = c.campaign_id
            WHERE c.tenant_id = its_tenant AND c.id = player))
        AND (visit IS NULL OR NOT EXISTS (SELECT FROM ended_visit e WHERE e.tenant_id = its_tenant AND e.id = visit));
END $$
-- ;;
-- How a turn opens by a cached prompt, as before but for a campaign that is gone: nobody's turn runs there, and its prompt is stale.
CREATE OR REPLACE FUNCTION turn_open(
    its_tenant uuid, who text, its_campaign uuid, head_keys text[], head_sum bigint,
    its_id uuid, its_kind text, its_entity uuid, its_player uuid, its_action text, its_mode text, its_on_failure text,
    its_key_id uuid, its_instance bigint, lease_seconds int, claim_id uuid, claim_route text, claim_key text, claim_print bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    sum_now bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM campaign c WHERE c.tenant_id = its_tenant AND c.id = its_campaign) THEN
        RETURN false;
    END IF;
    IF claim_key IS NOT NULL THEN
        INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
        VALUES (its_tenant, claim_id, claim_key, claim_route, claim_print, 'running', its_id)
        ON CONFLICT (tenant_id, route, key) DO NOTHING;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, on_failure,
                      key_id, instance, lease_until)
    VALUES (its_tenant, its_id, its_campaign, its_kind, 'running', its_entity, its_player, its_action, its_mode, its_on_failure,
            its_key_id, its_instance, now() + lease_seconds * interval '1 second');
    -- Head by head: over all at once the planner would read every head of the campaign.
    SELECT sum((SELECT h.version FROM version_head h WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key = k))
    INTO sum_now FROM unnest(head_keys) AS k;
    IF sum_now = head_sum THEN
        RETURN true;
    END IF;
    DELETE FROM turn WHERE tenant_id = its_tenant AND id = its_id;
    DELETE FROM idempotency WHERE tenant_id = its_tenant AND id = claim_id;
    RETURN false;
END $$
-- ;;
-- Of these places, those that no turn has; a session has no player, which is the nil id.
CREATE FUNCTION free_places(tenants uuid[], entities uuid[], players uuid[]) RETURNS TABLE (tenant_id uuid, entity_id uuid, player_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT w.tenant, w.entity, w.player FROM unnest(tenants, entities, players) AS w (tenant, entity, player)
    WHERE NOT EXISTS (
        SELECT FROM turn t WHERE t.tenant_id = w.tenant AND t.entity_id = w.entity AND t.status = 'running' AND t.kind <> 'planner'
          AND coalesce(t.player_id, '00000000-0000-0000-0000-000000000000') = w.player)
$$
-- ;;
-- How far turns are: another text than before if there is more to hear of one. One that is gone is nowhere.
CREATE FUNCTION turns_told(tenants uuid[], turns uuid[]) RETURNS TABLE (tenant_id uuid, turn_id uuid, told text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT f.tenant, f.turn, coalesce((
        SELECT t.status || ' ' || t.runs_before || ' ' || coalesce((
            SELECT max(e.seq) FROM turn_event e WHERE e.tenant_id = t.tenant_id AND e.turn_id = t.id), 0)
        FROM turn t WHERE t.tenant_id = f.tenant AND t.id = f.turn), 'gone')
    FROM unnest(tenants, turns) AS f (tenant, turn)
$$
-- ;;
REVOKE ALL ON FUNCTION free_places, turns_told FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION free_places, turns_told TO tavernkeep_app
-- ;;
REVOKE ALL ON FUNCTION campaign_leave, campaigns_leaving, campaign_remove, campaign_remove_failed, erase_forks FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION campaign_leave, campaigns_leaving, campaign_remove, campaign_remove_failed, erase_forks TO tavernkeep_app
