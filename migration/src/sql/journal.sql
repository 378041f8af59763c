-- The journal: every change of a campaign's world, in the order of commits.

-- Where a campaign's journal ends (`seq`), up to which number it was pruned, and when the youngest of the pruned rows was written.
CREATE TABLE feed_head (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    seq bigint NOT NULL,
    pruned_seq bigint NOT NULL DEFAULT 0,
    pruned_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, campaign_id)
);
CALL make_tenant_table('feed_head', 'read-only');

-- One row for each change of a row of the world: what the row was, and what it became.
CREATE TABLE journal (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    schema_version int NOT NULL DEFAULT 1,
    table_name text NOT NULL,
    row_id uuid NOT NULL,
    op text NOT NULL,
    before jsonb,
    after jsonb,
    origin text NOT NULL,
    key_id uuid,
    turn_id uuid,
    request_id text,
    closes boolean NOT NULL,
    user_id uuid,
    redacted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, campaign_id, seq)
);
CALL make_tenant_table('journal', 'read-only');
CREATE INDEX journal_deleted ON journal (tenant_id, campaign_id, table_name, seq) WHERE op = 'delete';
CREATE INDEX journal_row ON journal (tenant_id, row_id, seq);
CREATE INDEX journal_turn_seq ON journal (tenant_id, turn_id, seq) WHERE turn_id IS NOT NULL;

-- One journal row for every change of world data, in the transaction that makes it. Who acts is the setting `app.who`:
-- `origin|key|turn|request`, where all but the first may be empty and a user stands as `user:id` in the key's place. Deferred to
-- the commit, where the first row locks the campaign's feed. The first two rows take their numbers from its head, as most
-- transactions have no more; from then on rows count in a setting (`campaign:seq:rows`), and `journal_close` writes the last number
-- back. The lock lasts until the commit is visible: the order of `seq` is the order of commits, and a reader of `after=seq`
-- misses nothing. It is an advisory lock, because a row's lock costs those who wait for it twice as much.
--
-- The deletion of a whole campaign (`app.removing`) is one row that was deleted; its own rows then go without entries. An image of a row
-- leaves out what is generated for searches. The image of a new message also leaves out `prompt_text`.
--
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
    what text := lower(TG_OP);
    done text;
BEGIN
    IF TG_TABLE_NAME IN ('lore', 'memory') THEN
        old_row := old_row - 'search';
        new_row := new_row - 'search';
    ELSIF TG_TABLE_NAME = 'message' AND TG_OP = 'INSERT' THEN
        new_row := new_row - 'prompt_text';
    END IF;
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
END $$;

-- Stores where the campaign's feed ends, after the last journal row of a transaction with many.
CREATE FUNCTION journal_close() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    feed text[] := string_to_array(current_setting('app.feed', true), ':');
BEGIN
    UPDATE public.feed_head SET seq = feed[2]::bigint WHERE tenant_id = NEW.tenant_id AND campaign_id = feed[1]::uuid;
    RETURN NULL;
END $$;

-- What changed in campaigns whose prompts a server has cached: the version heads that prompts are stamped with, and their present versions. A
-- prompt that was made since has these already.
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
$$;

-- Where the feeds of campaigns end.
CREATE FUNCTION feed_positions(tenants uuid[], campaigns uuid[]) RETURNS TABLE (tenant_id uuid, campaign_id uuid, seq bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT h.tenant_id, h.campaign_id, h.seq FROM unnest(tenants, campaigns) AS watched (tenant, campaign)
    JOIN feed_head h ON h.tenant_id = watched.tenant AND h.campaign_id = watched.campaign
$$;

-- Writes a deleted row again, with a version above every one it ever had. Columns that were added later have their defaults.
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
END $$;

-- Writes an earlier content over a row. Influence regenerates from now on. A column of a key is not named unless it changes: naming it would
-- wait for everybody who refers to the row.
CREATE FUNCTION restore_revision(target text, target_id uuid, content jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    present jsonb;
    cols text;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE t.tenant_id = $1 AND t.id = $2', target) INTO present USING tenant, target_id;
    SELECT string_agg(format('%1$I = r.%1$I', attname), ', ') INTO cols FROM pg_attribute
    WHERE attrelid = target::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped AND content ? attname
      AND attname NOT IN ('tenant_id', 'id', 'campaign_id', 'version', 'created_at', 'updated_at', 'influence_at')
      AND NOT (attname IN ('slug', 'external_ref', 'channel') AND content -> attname IS NOT DISTINCT FROM present -> attname);
    EXECUTE format('UPDATE %1$I t SET %2$s FROM jsonb_populate_record(NULL::%1$I, $3) r '
                   'WHERE t.tenant_id = $1 AND t.id = $2', target, cols)
        USING tenant, target_id, content;
END $$;

-- Deletes at most `rows_max` entries that are older than the tenant's `journal_retention_days`, or `older_than` without it. Stores for each
-- campaign up to where, and when the youngest of them was written. Returns `rows_max` if more may be left. A campaign's entries stand in the
-- order of their age, so this looks only at the first ones of each campaign. An index on the age of entries would make every change dearer.
CREATE FUNCTION prune_journal(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    feed record;
    entry record;
    upto bigint;
    youngest timestamptz;
    heads feed_head[] := '{}';
    gone bigint := 0;
BEGIN
    FOR feed IN
        SELECT h.tenant_id, h.campaign_id, a.oldest_kept FROM feed_head h JOIN tenant t ON t.tenant_id = h.tenant_id
        CROSS JOIN LATERAL (SELECT now() - coalesce((t.settings ->> 'journal_retention_days')::int * interval '1 day', older_than) AS oldest_kept) a
        CROSS JOIN LATERAL (SELECT j.at FROM journal j WHERE j.tenant_id = h.tenant_id AND j.campaign_id = h.campaign_id ORDER BY j.seq LIMIT 1) f
        WHERE f.at < a.oldest_kept
    LOOP
        upto := NULL;
        youngest := NULL;
        FOR entry IN SELECT j.seq, j.at FROM journal j WHERE j.tenant_id = feed.tenant_id AND j.campaign_id = feed.campaign_id
                     ORDER BY j.seq LIMIT rows_max - gone LOOP
            EXIT WHEN entry.at >= feed.oldest_kept;
            upto := entry.seq;
            youngest := greatest(youngest, entry.at);
            gone := gone + 1;
        END LOOP;
        DELETE FROM journal j WHERE j.tenant_id = feed.tenant_id AND j.campaign_id = feed.campaign_id AND j.seq <= upto;
        heads := heads || jsonb_populate_record(NULL::feed_head, jsonb_build_object('tenant_id', feed.tenant_id,
            'campaign_id', feed.campaign_id, 'pruned_seq', upto, 'pruned_at', youngest));
        EXIT WHEN gone >= rows_max;
    END LOOP;
    -- Last, because every commit of a campaign changes its head.
    UPDATE feed_head h SET pruned_seq = greatest(h.pruned_seq, n.pruned_seq), pruned_at = greatest(h.pruned_at, n.pruned_at)
    FROM unnest(heads) n WHERE h.tenant_id = n.tenant_id AND h.campaign_id = n.campaign_id;
    RETURN gone;
END $$;

CREATE CONSTRAINT TRIGGER journal_close AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.closes)
    EXECUTE FUNCTION journal_close();

-- What is kept for long and read seldom is compressed with the faster method, if PostgreSQL was built with it.
DO $$ BEGIN
    ALTER TABLE journal ALTER before SET COMPRESSION lz4, ALTER after SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;
