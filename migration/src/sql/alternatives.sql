-- Answers that are tried again. Turns with the same `parent_turn_id`, and that turn itself, are alternatives of one answer. One of them is
-- chosen: its effects and messages are in the world. Those of the others are reverted, and can be applied again.
ALTER TABLE turn ADD COLUMN chosen boolean NOT NULL DEFAULT true, ADD COLUMN awaits uuid, ADD COLUMN awaits_until timestamptz,
    ADD COLUMN edited_at timestamptz
-- ;;
CREATE INDEX turn_parent ON turn (tenant_id, parent_turn_id) WHERE parent_turn_id IS NOT NULL
-- ;;
CREATE INDEX turn_awaits ON turn (tenant_id, awaits_until) WHERE awaits IS NOT NULL
-- ;;
-- The alternatives of a turn's answer, itself among them, the oldest first. Empty if there are no others.
CREATE FUNCTION turn_alternatives(its_tenant uuid, its_id uuid, its_parent uuid) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN count(*) > 1 THEN array_agg(a.id ORDER BY a.id) ELSE '{}' END FROM (
        SELECT t.id FROM turn t WHERE t.tenant_id = its_tenant AND t.parent_turn_id = coalesce(its_parent, its_id)
          AND t.status IN ('succeeded', 'limit_reached')
        UNION SELECT coalesce(its_parent, its_id)) a
$$
-- ;;
-- Applies the effects of a turn again that were reverted last: reverts their revert, newest first. Returns what stood in the way, as
-- `revert_turn_step` does; nothing of that is applied. With `is_careful`, a row that cannot be applied is one of these conflicts. The caller's
-- transaction acts in the turn, so these changes can be reverted again.
--
-- Example: a turn wrote a memory (journal row 10) and was set aside (row 11 deletes the memory, origin `revert`). Row 11 is the only revert
-- after the turn's last own change, so reverting it writes the memory again (row 12, origin `turn`).
CREATE FUNCTION turn_apply(turn_of uuid, is_careful boolean) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    own bigint;
    entry journal;
    news jsonb;
    conflicts jsonb := '[]';
BEGIN
    PERFORM FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR UPDATE;
    IF is_careful THEN
        SET CONSTRAINTS ALL IMMEDIATE;
        SET CONSTRAINTS journal_close DEFERRED;
    END IF;
    own := coalesce((SELECT max(j.seq) FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of AND j.origin <> 'revert'), 0);
    FOR entry IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of AND j.origin = 'revert' AND j.seq > own
                 ORDER BY j.seq DESC LOOP
        IF is_careful THEN
            news := revert_carefully(entry);
        ELSE
            SELECT jsonb_agg(to_jsonb(r)) INTO news FROM revert_entry(entry) AS r;
        END IF;
        conflicts := conflicts || coalesce((
            SELECT jsonb_agg(jsonb_build_object('table', c -> 'table_name', 'id', c -> 'row_id', 'column', c -> 'column_name', 'reason', c -> 'reason'))
            FROM jsonb_array_elements(news) AS c), '[]');
    END LOOP;
    UPDATE turn t SET chosen = true, awaits = NULL, awaits_until = NULL, revert_next = NULL, revert_done = 0
    WHERE t.tenant_id = tenant AND t.id = turn_of;
    RETURN conflicts;
END $$
-- ;;
-- Ends the wait of a turn that was set aside for another attempt. If that attempt answered, the turn stays set aside. Otherwise the
-- turn's effects are applied again. Returns what could not be applied; null if there was nothing to settle.
CREATE FUNCTION turn_settle(turn_of uuid) RETURNS jsonb LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    attempt uuid;
    its_status text;
BEGIN
    SELECT t.awaits INTO attempt FROM turn t
    WHERE t.tenant_id = tenant AND t.id = turn_of AND t.awaits IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT a.status INTO its_status FROM turn a WHERE a.tenant_id = tenant AND a.id = attempt;
    IF its_status IN ('queued', 'running') THEN
        RETURN NULL;
    ELSIF its_status IN ('succeeded', 'limit_reached') THEN
        UPDATE turn t SET awaits = NULL, awaits_until = NULL WHERE t.tenant_id = tenant AND t.id = turn_of;
        RETURN '[]';
    END IF;
    RETURN turn_apply(turn_of, true);
END $$
-- ;;
-- Turns of all tenants that were set aside for an attempt that does not run any more; the oldest of each tenant first.
CREATE FUNCTION turns_awaiting(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id FROM turn t WHERE t.awaits IS NOT NULL AND t.awaits_until < now()
      AND NOT EXISTS (SELECT FROM turn a WHERE a.tenant_id = t.tenant_id AND a.id = t.awaits AND a.status IN ('queued', 'running'))
    ORDER BY row_number() OVER (PARTITION BY t.tenant_id ORDER BY t.awaits_until), t.awaits_until LIMIT rows_max
$$
-- ;;
REVOKE ALL ON FUNCTION turn_alternatives, turn_apply, turn_settle, turns_awaiting FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION turn_alternatives, turn_apply, turn_settle, turns_awaiting TO tavernkeep_app
-- ;;
-- As before, with `parent_turn_id`.
CREATE OR REPLACE FUNCTION turn_claim(its_tenant uuid, new jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF new -> 'claim' <> 'null' THEN
        INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id)
        SELECT its_tenant, c.id, c.key, c.route, decode(c.fingerprint, 'hex'), 'running', (new ->> 'id')::uuid
        FROM jsonb_to_record(new -> 'claim') AS c (id uuid, key text, route text, fingerprint text)
        ON CONFLICT (tenant_id, route, key) DO NOTHING;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, on_failure,
                      key_id, instance, lease_until, seen_seq, seen_event, told_as, parent_turn_id)
    SELECT its_tenant, t.id, t.campaign_id, t.kind, t.status, t.entity_id, t.player_id, t.action, t.reply_mode, t.on_failure,
           t.key_id, t.instance, now() + t.lease_seconds * interval '1 second', t.seen_seq, t.seen_event, t.told_as, t.parent_turn_id
    FROM jsonb_to_record(new) AS t (
        id uuid, campaign_id uuid, kind text, status text, entity_id uuid, player_id uuid, action text, reply_mode text,
        on_failure text, key_id uuid, instance bigint, lease_seconds int, seen_seq bigint, seen_event bigint, told_as text,
        parent_turn_id uuid);
    RETURN true;
END $$
-- ;;
-- As before, but a turn that awaits another attempt stays until that is settled.
CREATE OR REPLACE FUNCTION prune_system(turn_age interval, idempotency_age interval, rows_max int) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    turns bigint;
    keys bigint;
BEGIN
    WITH old AS (
        SELECT t.tenant_id, t.id FROM turn t JOIN tenant n ON n.tenant_id = t.tenant_id
        WHERE t.created_at < now() - coalesce((n.settings ->> 'turn_retention_days')::int * interval '1 day', turn_age)
          AND t.status NOT IN ('queued', 'running') AND t.revert_as IS NULL AND t.awaits IS NULL ORDER BY t.created_at LIMIT rows_max)
    DELETE FROM turn t USING old WHERE t.tenant_id = old.tenant_id AND t.id = old.id;
    GET DIAGNOSTICS turns = ROW_COUNT;
    WITH old AS (
        SELECT i.tenant_id, i.id FROM idempotency i WHERE i.created_at < now() - idempotency_age
        ORDER BY i.created_at LIMIT rows_max)
    DELETE FROM idempotency i USING old WHERE i.tenant_id = old.tenant_id AND i.id = old.id;
    GET DIAGNOSTICS keys = ROW_COUNT;
    RETURN turns + keys;
END $$
