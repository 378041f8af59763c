-- Functions and triggers of the first schema; a comment of two semicolons ends each statement.
-- Definer functions run as the schema's owner, whose own policies let them see rows under FORCE ROW LEVEL SECURITY;
-- each takes its tenant from the caller's settings or from a secret the caller must know.

-- Versions only rise: an update is one more than what it found, whatever the statement says.
CREATE FUNCTION touch_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := now();
    RETURN NEW;
END $$
-- ;;
-- One journal row for every change of world data, in the transaction that makes it. Who acts is the setting `app.who`:
-- `origin|key|turn|request`, where all but the first may be empty and a user stands as `user:id` in the key's place. Deferred to
-- the commit, where the first row locks the campaign's feed. The first two rows take their numbers from its head, as most
-- transactions have no more; from then on rows count in a setting (`campaign:seq:rows`), and `journal_close` writes the last number
-- back. The lock lasts until the commit is visible: the order of `seq` is the order of commits, and a reader of `after=seq`
-- misses nothing. It is an advisory lock, because a row's lock costs those who wait for it twice as much.
-- Hot trigger functions name the schema instead of setting a search path, which would cost more than their work.
CREATE FUNCTION journal_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
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
    done text;
BEGIN
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
    VALUES (tenant, campaign, number, TG_TABLE_NAME, (any_row ->> 'id')::uuid, lower(TG_OP), old_row, new_row,
            coalesce(nullif(who[1], ''), 'api'), CASE WHEN NOT is_user THEN nullif(who[2], '')::uuid END,
            CASE WHEN is_user THEN substr(who[2], 6)::uuid END, nullif(who[3], '')::uuid,
            nullif(array_to_string(who[4:], '|'), ''), rows_now = 3);
    RETURN NULL;
END $$
-- ;;
-- After the last journal row of a transaction with many: writes where the campaign's feed ends.
CREATE FUNCTION journal_close() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    feed text[] := string_to_array(current_setting('app.feed', true), ':');
BEGIN
    UPDATE public.feed_head SET seq = feed[2]::bigint WHERE tenant_id = NEW.tenant_id AND campaign_id = feed[1]::uuid;
    RETURN NULL;
END $$
-- ;;
-- A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits.
CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid
$$
-- ;;
-- Version heads: what a cached prompt compares. They outlive the rows they stand for, so no version is met twice. A head
-- rises once a transaction: nobody else sees it before the commit, and a thousand updates of one row would be a thousand
-- versions to walk through.
CREATE FUNCTION bump_head(tenant uuid, campaign uuid, head text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO version_head AS h (tenant_id, campaign_id, key, version) VALUES (tenant, campaign, head, 1)
    ON CONFLICT (tenant_id, campaign_id, key) DO UPDATE SET version = h.version + 1
    WHERE h.xmin <> pg_current_xact_id()::xid;
END $$
-- ;;
-- A head as it is at this moment, not as the calling statement's snapshot has it: called where a turn takes its place,
-- which may have waited for the turn before it to end.
CREATE FUNCTION head_now(tenant uuid, campaign uuid, head text) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT version FROM version_head WHERE tenant_id = tenant AND campaign_id = campaign AND key = head), 0);
END $$
-- ;;
CREATE FUNCTION bump_heads() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END;
    row_old jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    row_new jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    campaign uuid := coalesce(coalesce(row_new, row_old) ->> 'campaign_id', coalesce(row_new, row_old) ->> 'id')::uuid;
    head_old text;
    head_new text;
BEGIN
    -- TG_ARGV: pairs of (columns that name the head, columns whose change bumps it).
    FOR i IN 0 .. TG_NARGS - 1 BY 3 LOOP
        head_old := NULL;
        head_new := NULL;
        IF row_old IS NOT NULL THEN
            SELECT TG_ARGV[i] || string_agg(':' || coalesce(row_old ->> c, ''), '' ORDER BY n)
            INTO head_old FROM unnest(string_to_array(TG_ARGV[i + 1], ',')) WITH ORDINALITY AS names (c, n);
        END IF;
        IF row_new IS NOT NULL THEN
            SELECT TG_ARGV[i] || string_agg(':' || coalesce(row_new ->> c, ''), '' ORDER BY n)
            INTO head_new FROM unnest(string_to_array(TG_ARGV[i + 1], ',')) WITH ORDINALITY AS names (c, n);
        END IF;
        IF TG_OP = 'UPDATE' AND head_old = head_new AND TG_ARGV[i + 2] <> '*' AND NOT EXISTS (
            SELECT 1 FROM unnest(string_to_array(TG_ARGV[i + 2], ',')) AS c
            WHERE row_old -> c IS DISTINCT FROM row_new -> c) THEN
            CONTINUE;
        END IF;
        -- In one order everywhere, so that two transactions cannot wait for each other in a circle.
        IF head_old IS NOT NULL AND head_new IS NOT NULL AND head_old > head_new THEN
            PERFORM bump_head(tenant, campaign, head_new);
            PERFORM bump_head(tenant, campaign, head_old);
        ELSE
            IF head_old IS NOT NULL THEN
                PERFORM bump_head(tenant, campaign, head_old);
            END IF;
            IF head_new IS NOT NULL AND head_new IS DISTINCT FROM head_old THEN
                PERFORM bump_head(tenant, campaign, head_new);
            END IF;
        END IF;
    END LOOP;
    RETURN NULL;
END $$
-- ;;
-- The two hot writers of a turn have heads of their own, written without the general function's JSON.
CREATE FUNCTION bump_memory() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO public.version_head AS h (tenant_id, campaign_id, key, version)
        VALUES (OLD.tenant_id, OLD.campaign_id, 'memory:' || OLD.holder_id || ':' || OLD.subject_id, 1)
        ON CONFLICT (tenant_id, campaign_id, key) DO UPDATE SET version = h.version + 1
        WHERE h.xmin <> pg_current_xact_id()::xid;
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND (NEW.holder_id, NEW.subject_id) <> (OLD.holder_id, OLD.subject_id)) THEN
        INSERT INTO public.version_head AS h (tenant_id, campaign_id, key, version)
        VALUES (NEW.tenant_id, NEW.campaign_id, 'memory:' || NEW.holder_id || ':' || NEW.subject_id, 1)
        ON CONFLICT (tenant_id, campaign_id, key) DO UPDATE SET version = h.version + 1
        WHERE h.xmin <> pg_current_xact_id()::xid;
    END IF;
    RETURN NULL;
END $$
-- ;;
CREATE FUNCTION bump_talk() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    said public.message := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    -- A session's AI talks with the table, whomever it plays.
    with_whom uuid := CASE WHEN said.entity_id = said.session_id THEN '00000000-0000-0000-0000-000000000000' ELSE said.player_id END;
BEGIN
    IF said.entity_id IS NOT NULL AND with_whom IS NOT NULL THEN
        INSERT INTO public.version_head AS h (tenant_id, campaign_id, key, version)
        VALUES (said.tenant_id, said.campaign_id, 'talk:' || said.entity_id || ':' || with_whom, 1)
        ON CONFLICT (tenant_id, campaign_id, key) DO UPDATE SET version = h.version + 1
        WHERE h.xmin <> pg_current_xact_id()::xid;
    END IF;
    RETURN NULL;
END $$
-- ;;
-- Slugs are unique per campaign across characters, NPCs and owners.
CREATE FUNCTION keep_actor_slug() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM actor_slug WHERE tenant_id = OLD.tenant_id AND campaign_id = OLD.campaign_id AND slug = OLD.slug;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO actor_slug (tenant_id, campaign_id, slug, kind, actor_id)
        VALUES (NEW.tenant_id, NEW.campaign_id, NEW.slug, TG_TABLE_NAME, NEW.id);
    ELSIF NEW.slug <> OLD.slug THEN
        UPDATE actor_slug SET slug = NEW.slug
        WHERE tenant_id = OLD.tenant_id AND campaign_id = OLD.campaign_id AND slug = OLD.slug;
    END IF;
    RETURN NULL;
END $$
-- ;;
-- `npc.owner_ids` is the truth; npc_owner holds its foreign keys and answers 'which NPCs has this owner?'.
CREATE FUNCTION keep_npc_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.owner_ids = OLD.owner_ids THEN
            RETURN NULL;
        END IF;
        DELETE FROM npc_owner WHERE tenant_id = NEW.tenant_id AND npc_id = NEW.id;
    END IF;
    INSERT INTO npc_owner (tenant_id, campaign_id, npc_id, owner_id)
    SELECT DISTINCT NEW.tenant_id, NEW.campaign_id, NEW.id, o FROM unnest(NEW.owner_ids) AS o;
    RETURN NULL;
END $$
-- ;;
-- Sign-in: what a key's prefix stands for, and which features the operator switched off. The caller proves the key by its hash.
CREATE FUNCTION auth_key(key_prefix text) RETURNS TABLE (
    key_id uuid, tenant_id uuid, hash bytea, scopes text[], expires_at timestamptz, revoked_at timestamptz,
    limits jsonb, settings jsonb, tenant_version bigint, origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE api_key k SET last_used_at = now()
    WHERE k.prefix = key_prefix AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute')
      AND k.id = (SELECT l.id FROM api_key l WHERE l.prefix = key_prefix FOR UPDATE SKIP LOCKED);
    RETURN QUERY SELECT k.id, k.tenant_id, k.hash, k.scopes, k.expires_at, k.revoked_at,
                        t.limits, t.settings, t.version, t.origins, t.llm_api_key,
                        ARRAY(SELECT s.name FROM operator_switch s WHERE NOT s.enabled)
    FROM api_key k JOIN tenant t ON t.tenant_id = k.tenant_id WHERE k.prefix = key_prefix;
END $$
-- ;;
CREATE FUNCTION all_origins() RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT unnest(origins) FROM tenant
$$
-- ;;
-- Full-text search behind row security: GIN operators are not leakproof, so a policy would keep their index unused.
-- The tenant filter is explicit and taken from the caller's transaction. Of words for lore the last may be the beginning of one.
CREATE FUNCTION search_lore(campaign uuid, words text, rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT id FROM lore
    WHERE tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND campaign_id = campaign
      AND search @@ CASE WHEN words ~ '\w$' AND websearch_to_tsquery('simple', words)::text <> ''
                         THEN (websearch_to_tsquery('simple', words)::text || ':*')::tsquery
                         ELSE websearch_to_tsquery('simple', words) END
    LIMIT rows_max
$$
-- ;;
CREATE FUNCTION search_memory(campaign uuid, words text, rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT id FROM memory
    WHERE tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND campaign_id = campaign
      AND search @@ websearch_to_tsquery('simple', words)
    LIMIT rows_max
$$
-- ;;
-- What moved in campaigns that a replica holds prompts of, as the version heads that prompts are stamped with,
-- and their present versions: a prompt made since has them already.
CREATE FUNCTION journal_tail(tenants uuid[], campaigns uuid[], seqs bigint[], rows_max int) RETURNS TABLE (
    tenant_id uuid, campaign_id uuid, seq bigint, heads text[], versions bigint[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT moved.*, ARRAY(
        SELECT coalesce((SELECT v.version FROM version_head v WHERE v.tenant_id = moved.tenant_id
                         AND v.campaign_id = moved.campaign_id AND v.key = k), 0)
        FROM unnest(moved.heads) WITH ORDINALITY AS named (k, n) ORDER BY n)
    FROM (
    SELECT j.tenant_id, j.campaign_id, j.seq, CASE j.table_name
        WHEN 'campaign' THEN ARRAY['campaign:' || j.row_id]
        WHEN 'npc' THEN ARRAY['entity:' || j.row_id]
        WHEN 'owner' THEN ARRAY['entity:' || j.row_id]
        WHEN 'character' THEN ARRAY['player:' || j.row_id]
        WHEN 'lore' THEN ARRAY['lore:' || coalesce(j.before ->> 'scope', '') || ':' || coalesce(j.before ->> 'associated_key', ''),
                               'lore:' || coalesce(j.after ->> 'scope', '') || ':' || coalesce(j.after ->> 'associated_key', '')]
        WHEN 'memory' THEN ARRAY['memory:' || (coalesce(j.after, j.before) ->> 'holder_id') || ':' || (coalesce(j.after, j.before) ->> 'subject_id')]
        ELSE ARRAY[]::text[] END AS heads
    FROM unnest(tenants, campaigns, seqs) AS held (tenant, campaign, seen)
    JOIN feed_head h ON h.tenant_id = held.tenant AND h.campaign_id = held.campaign AND h.seq > held.seen
    CROSS JOIN LATERAL (
        SELECT * FROM journal j WHERE j.tenant_id = held.tenant AND j.campaign_id = held.campaign AND j.seq > held.seen
        ORDER BY j.seq LIMIT rows_max) j
    ) moved
$$
-- ;;
-- Where the feeds of campaigns end.
CREATE FUNCTION feed_positions(tenants uuid[], campaigns uuid[]) RETURNS TABLE (tenant_id uuid, campaign_id uuid, seq bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT h.tenant_id, h.campaign_id, h.seq FROM unnest(tenants, campaigns) AS watched (tenant, campaign)
    JOIN feed_head h ON h.tenant_id = watched.tenant AND h.campaign_id = watched.campaign
$$
-- ;;
-- A turn's id (a UUID of version 7) holds when it was asked for. So the answer, which is written before the row is read again, says
-- the same as the row.
CREATE FUNCTION turn_created() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.created_at := timestamptz 'epoch'
        + ('x' || left(replace(NEW.id::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond';
    RETURN NEW;
END $$
-- ;;
-- The two transactions of a turn, each in one round trip. They run as the caller, bound by row security like any statement.
-- The first claims the idempotency key (if there is one) and writes that the turn runs, if the version heads that its prompt
-- was built from have not moved: versions only rise, so equal sums are equal versions. They are read after the turn took its
-- place, for which it may have waited. False if they moved or the key is known; nothing is written then. What it writes may
-- be lost if PostgreSQL itself crashes, so its commit does not wait for the disk.
CREATE FUNCTION turn_open(
    its_tenant uuid, who text, its_campaign uuid, head_keys text[], head_sum bigint,
    its_id uuid, its_kind text, its_entity uuid, its_player uuid, its_action text, its_mode text, its_on_failure text,
    its_key_id uuid, its_instance bigint, lease_seconds int, claim_id uuid, claim_route text, claim_key text, claim_print bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
    sum_now bigint;
BEGIN
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
-- The second: how the turn ended, its usage if a model was asked, its answer under its key, and what was said. False if the turn is
-- no longer this server's; nothing is written then.
CREATE FUNCTION turn_finish(
    its_tenant uuid, who text, its_campaign uuid, its_id uuid, its_kind text, its_instance bigint, its_status text, its_record text,
    usage_id uuid, its_model text, calls int, prompt bigint, cached bigint, completion bigint, cost bigint,
    answer_headers jsonb, answer bytea, its_entity uuid, its_player uuid, asked_id uuid, asked_by text, asked text,
    asked_prompt text, asked_tokens int, asked_window uuid, told_id uuid, told_by text, told text, told_tokens int)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    UPDATE turn SET status = its_status, record = its_record::json, finished_at = now()
    WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance AND status = 'running' AND NOT cancel_requested;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF answer IS NOT NULL THEN
        UPDATE idempotency SET state = 'done', status = 200, headers = answer_headers, body = answer
        WHERE tenant_id = its_tenant AND turn_id = its_id;
    END IF;
    IF calls > 0 THEN
        INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens,
                                 completion_tokens, cost_micros)
        VALUES (its_tenant, usage_id, its_campaign, its_kind, its_model, calls, prompt, cached, completion, cost);
    END IF;
    IF asked_id IS NOT NULL THEN
        INSERT INTO message (tenant_id, id, campaign_id, type, speaker, content, author, player_id, entity_id, whisper_to,
                             blind, turn_id, prompt_text, tokens, window_start)
        VALUES (its_tenant, asked_id, its_campaign, 'chat', jsonb_build_object('name', asked_by), asked, 'player', its_player,
                its_entity, '[]', false, its_id, asked_prompt, asked_tokens, asked_window),
               (its_tenant, told_id, its_campaign, 'chat', jsonb_build_object('name', told_by), told, 'ai', its_player,
                its_entity, '[]', false, its_id, NULL, told_tokens, NULL);
    END IF;
    RETURN true;
END $$
-- ;;
-- Opens a batch of tool calls: holds the turn until the transaction ends, if it is still this server's.
CREATE FUNCTION turn_hold(its_tenant uuid, who text, its_id uuid, its_instance bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    PERFORM FROM turn WHERE tenant_id = its_tenant AND id = its_id AND instance = its_instance
      AND status = 'running' AND NOT cancel_requested FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the turn was cancelled or taken over' USING ERRCODE = 'TK001';
    END IF;
END $$
-- ;;
-- Turns whose server is gone: its lease ran out, or it no longer holds the advisory lock that says it lives.
CREATE FUNCTION orphaned_turns(rows_max int) RETURNS TABLE (tenant_id uuid, turn_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id FROM turn t
    WHERE (t.status = 'running' OR t.status = 'queued') AND (t.lease_until < now() OR NOT EXISTS (
        SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1413567051 AND l.objid::bigint = t.instance
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))
    LIMIT rows_max
$$
-- ;;
-- A server says that its turns go on, and hears which of them someone wants cancelled, or are gone with their campaign.
CREATE FUNCTION renew_leases(server bigint, turns uuid[], seconds int) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    WITH mine AS (
        UPDATE turn SET lease_until = now() + seconds * interval '1 second'
        WHERE instance = server AND status IN ('queued', 'running') AND id = ANY (turns) RETURNING id, cancel_requested)
    SELECT t FROM unnest(turns) AS t WHERE NOT EXISTS (SELECT 1 FROM mine WHERE id = t AND NOT cancel_requested)
$$
-- ;;
-- Retention: forgets journal rows older than `older_than` and remembers, per campaign, up to where.
CREATE FUNCTION prune_journal(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH old AS (
        SELECT j.tenant_id, j.campaign_id, j.seq FROM journal j
        JOIN tenant t ON t.tenant_id = j.tenant_id
        WHERE j.at < now() - coalesce((t.settings ->> 'journal_retention_days')::int * interval '1 day', older_than)
        ORDER BY j.at LIMIT rows_max
    ), pruned AS (
        DELETE FROM journal j USING old
        WHERE j.tenant_id = old.tenant_id AND j.campaign_id = old.campaign_id AND j.seq = old.seq
        RETURNING j.tenant_id, j.campaign_id, j.seq
    ), marked AS (
        UPDATE feed_head h SET pruned_seq = greatest(h.pruned_seq, p.seq)
        FROM (SELECT p.tenant_id, p.campaign_id, max(p.seq) AS seq FROM pruned p GROUP BY 1, 2) p
        WHERE h.tenant_id = p.tenant_id AND h.campaign_id = p.campaign_id RETURNING 1
    )
    SELECT count(*) INTO gone FROM pruned;
    RETURN gone;
END $$
-- ;;
CREATE FUNCTION prune_system(turn_age interval, idempotency_age interval, rows_max int) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    turns bigint;
    keys bigint;
BEGIN
    WITH old AS (
        SELECT t.tenant_id, t.id FROM turn t JOIN tenant n ON n.tenant_id = t.tenant_id
        WHERE t.created_at < now() - coalesce((n.settings ->> 'turn_retention_days')::int * interval '1 day', turn_age)
          AND t.status NOT IN ('queued', 'running') ORDER BY t.created_at LIMIT rows_max)
    DELETE FROM turn t USING old WHERE t.tenant_id = old.tenant_id AND t.id = old.id;
    GET DIAGNOSTICS turns = ROW_COUNT;
    WITH old AS (
        SELECT i.tenant_id, i.id FROM idempotency i WHERE i.created_at < now() - idempotency_age
        ORDER BY i.created_at LIMIT rows_max)
    DELETE FROM idempotency i USING old WHERE i.tenant_id = old.tenant_id AND i.id = old.id;
    GET DIAGNOSTICS keys = ROW_COUNT;
    RETURN turns + keys;
END $$
-- ;;
-- Puts back what one turn changed, newest first, as forward writes: the journal rows of the reverts are new rows. It returns
-- the conflicts and reverts the rest; a caller who wants all or nothing rolls back.
CREATE FUNCTION revert_turn(turn_of uuid) RETURNS TABLE (
    table_name text, row_id uuid, column_name text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    entry journal;
    already bigint;
BEGIN
    -- A turn that is started anew under its id has rows of earlier attempts, which are reverted already.
    SELECT t.reverted_through INTO already FROM turn t WHERE t.tenant_id = tenant AND t.id = turn_of FOR UPDATE;
    FOR entry IN SELECT j.* FROM journal j WHERE j.tenant_id = tenant AND j.turn_id = turn_of AND j.origin <> 'revert'
                 AND j.seq > already
                 -- Where a fight stands follows from its log, which the server takes back itself.
                 AND NOT (j.table_name = 'encounter' AND j.op = 'update') ORDER BY j.seq DESC LOOP
        RETURN QUERY SELECT * FROM revert_entry(entry);
    END LOOP;
    UPDATE turn t SET reverted_through = coalesce((SELECT max(j.seq) FROM journal j
        WHERE j.tenant_id = tenant AND j.turn_id = turn_of), 0) WHERE t.tenant_id = tenant AND t.id = turn_of;
END $$
-- ;;
-- Puts a deleted row back with a version above every one it ever had. Columns that came later have their defaults.
CREATE FUNCTION restore_row(target text, target_id uuid, content jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    cols text;
    last_version bigint;
BEGIN
    SELECT max(greatest((j.after ->> 'version')::bigint, (j.before ->> 'version')::bigint)) INTO last_version
    FROM journal j WHERE j.tenant_id = tenant AND j.row_id = target_id;
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO cols FROM pg_attribute
    WHERE attrelid = target::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped AND content ? attname;
    EXECUTE format('INSERT INTO %1$I (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::%1$I, $1)', target, cols)
        USING content || jsonb_build_object('version', coalesce(last_version, 0) + 1, 'updated_at', now());
END $$
