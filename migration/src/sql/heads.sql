-- Versions of what prompts are built from. A cached prompt is up to date while they have not changed.

CREATE TABLE version_head (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    key text NOT NULL COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL,
    PRIMARY KEY (tenant_id, campaign_id, key)
) WITH (fillfactor = 70);
CALL make_tenant_table('version_head', 'read-only');

-- Raises a version head, which a cached prompt compares. Heads outlive the rows that they stand for, so no version occurs twice. A head rises
-- once in a transaction: nobody else sees it before the commit, and a thousand updates would leave a thousand versions of its row.
CREATE FUNCTION bump_head(tenant uuid, campaign uuid, head text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO version_head AS h (tenant_id, campaign_id, key, version) VALUES (tenant, campaign, head, 1)
    ON CONFLICT (tenant_id, campaign_id, key) DO UPDATE SET version = h.version + 1
    WHERE h.xmin <> pg_current_xact_id()::xid;
END $$;

-- A head as it is at this moment, not as the calling statement's snapshot has it: called where a turn takes its place,
-- which may have waited for the turn before it to end.
CREATE FUNCTION head_now(tenant uuid, campaign uuid, head text) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT version FROM version_head WHERE tenant_id = tenant AND campaign_id = campaign AND key = head), 0);
END $$;

-- Raises the heads of a row that was written. The trigger's arguments are groups of three: the name of a head, the columns whose values follow
-- it, and the columns whose change raises it (`*`: any). Example: `'mood', 'id', 'disposition'` raises `mood:0192…` when `disposition`
-- changes. If the columns that name a head change, both heads are raised.
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
END $$;

-- Raises the head of a pair's memories. Memories and messages, which turns write, have functions of their own without JSON, which is faster.
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
END $$;

-- Raises the head of a conversation in which something was said or changed.
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
END $$;

-- Which creatures are where: one head for the campaign. Only prompts of campaigns with lore of creatures are made from it.
CREATE FUNCTION bump_creatures() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    its_tenant uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END;
    its_campaign uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.campaign_id ELSE NEW.campaign_id END;
BEGIN
    IF TG_OP = 'UPDATE' AND (OLD.slug, OLD.name, OLD.race, OLD.location, OLD.stats ->> 'creature_type')
            IS NOT DISTINCT FROM (NEW.slug, NEW.name, NEW.race, NEW.location, NEW.stats ->> 'creature_type') THEN
        RETURN NULL;
    END IF;
    PERFORM bump_head(its_tenant, its_campaign, 'creatures:' || its_campaign);
    RETURN NULL;
END $$;

-- The versions of heads of lore, in their order. `lore::` stands for all lore of the campaign: heads only rise, and so does their sum.
-- Planned once: the planner would else try anew at each call how many keys there are, which costs more than all the rest.
CREATE FUNCTION lore_heads(its_tenant uuid, its_campaign uuid, keys text[]) RETURNS bigint[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        SELECT CASE WHEN k = 'lore::' THEN (
            SELECT coalesce(sum(h.version), 0)::bigint FROM version_head h
            WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key >= 'lore:' AND h.key < 'lore;')
        ELSE coalesce((SELECT h.version FROM version_head h
            WHERE h.tenant_id = its_tenant AND h.campaign_id = its_campaign AND h.key = k), 0) END
        FROM unnest(keys) WITH ORDINALITY AS named (k, n) ORDER BY n);
END $$;
