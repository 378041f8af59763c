-- Campaigns, characters, owners and NPCs.

CREATE TABLE campaign (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    game_system text NOT NULL,
    game_time text,
    settings jsonb NOT NULL,
    forked_from jsonb,
    -- When the campaign was deleted. The row stays until the last of its rows is gone, but no tenant sees it, and its slug is free.
    removed_at timestamptz,
    instructions text NOT NULL DEFAULT '',
    pending_instructions jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT campaign_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)
);
CALL make_tenant_table('campaign', 'world');
CREATE INDEX campaign_forked_from ON campaign (tenant_id, (forked_from ->> 'campaign_id')) WHERE forked_from IS NOT NULL;
CREATE UNIQUE INDEX campaign_external_ref_key ON campaign (tenant_id, external_ref) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX campaign_slug_key ON campaign (tenant_id, slug) WHERE removed_at IS NULL;

CREATE TABLE character (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    player_name text,
    player_user uuid,
    race text NOT NULL,
    profession text NOT NULL,
    faction text,
    level int NOT NULL,
    abilities jsonb NOT NULL,
    max_hp int NOT NULL,
    hp int NOT NULL,
    temp_hp int NOT NULL,
    armor_class int NOT NULL,
    speed int NOT NULL,
    size text NOT NULL,
    skill_proficiencies jsonb NOT NULL,
    saving_throw_proficiencies jsonb NOT NULL,
    weapon_proficiencies jsonb NOT NULL,
    features jsonb NOT NULL,
    weapons jsonb NOT NULL,
    armor jsonb,
    shield jsonb,
    spellcasting_ability text,
    spells jsonb NOT NULL,
    effects jsonb NOT NULL,
    concentration jsonb,
    hit_dice jsonb,
    death_saves jsonb NOT NULL,
    resistances jsonb NOT NULL,
    immunities jsonb NOT NULL,
    vulnerabilities jsonb NOT NULL,
    spell_slots jsonb NOT NULL,
    resources jsonb NOT NULL,
    conditions jsonb NOT NULL,
    inventory jsonb NOT NULL,
    location text,
    ai_lock boolean NOT NULL DEFAULT false,
    turn_flags jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT character_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('character', 'world');
CREATE INDEX character_list ON character (tenant_id, campaign_id, id);
CREATE INDEX character_name ON character (tenant_id, campaign_id, name COLLATE natural_order, id);
CREATE INDEX character_updated ON character (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX character_external_ref_key ON character (tenant_id, campaign_id, external_ref);
CREATE UNIQUE INDEX character_slug_key ON character (tenant_id, campaign_id, slug);

CREATE TABLE owner (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    personality_prompt text NOT NULL,
    monitored_aspect text NOT NULL,
    associated_id text NOT NULL,
    associated_key text NOT NULL,
    available_tools jsonb NOT NULL,
    reaction_threshold int,
    immediate_threshold int,
    ai_lock boolean NOT NULL DEFAULT false,
    influence_current double precision NOT NULL,
    influence_max double precision NOT NULL,
    influence_regen_per_hour double precision NOT NULL,
    influence_at timestamptz NOT NULL DEFAULT now(),
    resources jsonb NOT NULL DEFAULT '[]',
    model text,
    instructions text NOT NULL DEFAULT '',
    post_history_instructions text NOT NULL DEFAULT '',
    authors_note jsonb,
    example_dialogue text NOT NULL DEFAULT '',
    greetings jsonb NOT NULL DEFAULT '[]',
    scenario text NOT NULL DEFAULT '',
    pending_instructions jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT owner_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('owner', 'world');
CREATE INDEX owner_aspect ON owner (tenant_id, campaign_id, monitored_aspect, associated_key);
CREATE INDEX owner_list ON owner (tenant_id, campaign_id, id);
CREATE INDEX owner_model ON owner (tenant_id, model) WHERE model IS NOT NULL;
CREATE INDEX owner_name ON owner (tenant_id, campaign_id, name COLLATE natural_order, id);
CREATE INDEX owner_updated ON owner (tenant_id, campaign_id, updated_at, id);
CREATE INDEX owner_watch ON owner (tenant_id, campaign_id, monitored_aspect, associated_key, id);
CREATE UNIQUE INDEX owner_external_ref_key ON owner (tenant_id, campaign_id, external_ref);
CREATE UNIQUE INDEX owner_slug_key ON owner (tenant_id, campaign_id, slug);

CREATE TABLE npc (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    personality_prompt text NOT NULL,
    race text,
    profession text,
    location text,
    faction text,
    owner_ids uuid[] NOT NULL,
    available_tools jsonb NOT NULL,
    stats jsonb NOT NULL,
    conditions jsonb NOT NULL,
    effects jsonb NOT NULL,
    disposition text NOT NULL,
    behaviors jsonb NOT NULL DEFAULT '[]',
    inventory jsonb NOT NULL,
    reaction_threshold int,
    immediate_threshold int,
    ai_lock boolean NOT NULL DEFAULT false,
    -- The server's `scope_key` of the location, for names in ASCII. The server compares the spellings of other names itself.
    location_key text GENERATED ALWAYS AS (CASE WHEN octet_length(location) = char_length(location)
        THEN nullif(trim(BOTH '_' FROM regexp_replace(lower(location COLLATE "C"), '[^a-z0-9]+', '_', 'g')), '') END) STORED,
    model text,
    instructions text NOT NULL DEFAULT '',
    post_history_instructions text NOT NULL DEFAULT '',
    authors_note jsonb,
    example_dialogue text NOT NULL DEFAULT '',
    greetings jsonb NOT NULL DEFAULT '[]',
    scenario text NOT NULL DEFAULT '',
    pending_instructions jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT npc_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('npc', 'world');
CREATE INDEX npc_behaviors ON npc (tenant_id, campaign_id) WHERE behaviors <> '[]';
CREATE INDEX npc_list ON npc (tenant_id, campaign_id, id);
CREATE INDEX npc_location_key ON npc (tenant_id, campaign_id, location_key, id);
CREATE INDEX npc_location_without_key ON npc (tenant_id, campaign_id, location, id) WHERE location_key IS NULL AND location IS NOT NULL;
CREATE INDEX npc_model ON npc (tenant_id, model) WHERE model IS NOT NULL;
CREATE INDEX npc_name ON npc (tenant_id, campaign_id, name COLLATE natural_order, id);
CREATE INDEX npc_place ON npc (tenant_id, campaign_id, location, id);
CREATE INDEX npc_updated ON npc (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX npc_external_ref_key ON npc (tenant_id, campaign_id, external_ref);
CREATE UNIQUE INDEX npc_slug_key ON npc (tenant_id, campaign_id, slug);

-- The owners of an NPC, from `npc.owner_ids`. It refers to them, so none can be deleted while an NPC names it.
CREATE TABLE npc_owner (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    npc_id uuid NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, npc_id, owner_id),
    CONSTRAINT npc_owner_npc_id_fkey FOREIGN KEY (tenant_id, npc_id) REFERENCES npc (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT npc_owner_owner_id_fkey FOREIGN KEY (tenant_id, owner_id) REFERENCES owner (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
);
CALL make_tenant_table('npc_owner', 'system');
CREATE INDEX npc_owner_owner ON npc_owner (tenant_id, owner_id, npc_id);

-- A slug is unique among the characters, NPCs and owners of a campaign.
CREATE TABLE actor_slug (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    kind text NOT NULL,
    actor_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, campaign_id, slug),
    CONSTRAINT actor_slug_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('actor_slug', 'system');
CREATE INDEX actor_slug_actor ON actor_slug (tenant_id, actor_id);

-- Keeps `actor_slug` up to date.
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
END $$;

-- Keeps `npc_owner` equal to `npc.owner_ids`.
-- Takes what NPCs do towards a character out of them when it is deleted. An index has those that do anything, because a campaign that is
-- removed deletes thousands of characters.
CREATE FUNCTION forget_behaviors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE npc n SET behaviors = (SELECT coalesce(jsonb_agg(b ORDER BY nth), '[]') FROM jsonb_array_elements(n.behaviors) WITH ORDINALITY AS e (b, nth)
                                  WHERE b ->> 'player_id' IS DISTINCT FROM OLD.id::text)
    WHERE n.tenant_id = OLD.tenant_id AND n.campaign_id = OLD.campaign_id AND n.behaviors <> '[]'
      AND n.behaviors @> jsonb_build_array(jsonb_build_object('player_id', OLD.id));
    RETURN NULL;
END $$;

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
END $$;

-- The first of `candidates` that is free, or null. Those who ask for the same first candidate wait for each other's transactions, so each gets
-- a slug of its own. `source` is the table that has the slugs: they are unique in the tenant for campaigns, in the campaign for all else.
CREATE FUNCTION free_slug(its_tenant uuid, its_campaign uuid, source text, candidates text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    place text := CASE source WHEN 'campaign' THEN its_tenant::text ELSE its_campaign::text END;
    found text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('slug:%s:%s:%s', source, place, candidates[1]), 0));
    EXECUTE format(
        'SELECT c FROM unnest($1) WITH ORDINALITY AS wanted (c, n) WHERE NOT EXISTS (SELECT FROM %I t WHERE t.tenant_id = $2 AND %s = $3 '
        'AND t.slug = c) ORDER BY n LIMIT 1', source, CASE source WHEN 'campaign' THEN 't.tenant_id' ELSE 't.campaign_id' END)
        INTO found USING candidates, its_tenant, place::uuid;
    RETURN found;
END $$;

-- Creates NPCs of one kind, each with a slug of its own. `template` is a row of `npc` without what is different for each. No row if too few of
-- the candidates for slugs are free.
CREATE FUNCTION spawn_npcs(its_tenant uuid, its_campaign uuid, template jsonb, candidates text[], how_many int)
RETURNS TABLE (npc_id uuid, npc_slug text) LANGUAGE plpgsql AS $$
DECLARE
    first_free text := free_slug(its_tenant, its_campaign, 'actor_slug', candidates);
    free text[] := ARRAY(
        SELECT c FROM unnest(candidates) WITH ORDINALITY AS wanted (c, n) WHERE NOT EXISTS (
            SELECT FROM actor_slug a WHERE a.tenant_id = its_tenant AND a.campaign_id = its_campaign AND a.slug = c)
        ORDER BY n LIMIT how_many);
    -- The columns that `template` has or that every row gets here. Others have their defaults; generated ones cannot be written.
    row_template jsonb := template || jsonb_build_object('tenant_id', its_tenant, 'campaign_id', its_campaign, 'id', NULL, 'slug', NULL,
        'version', 1, 'created_at', now(), 'updated_at', now(), 'external_ref', NULL);
    cols text := (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = 'npc'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND row_template ? a.attname);
BEGIN
    IF first_free IS NULL OR cardinality(free) < how_many THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'INSERT INTO npc (%1$s) SELECT %1$s FROM (SELECT r.* FROM unnest($1) AS s, '
        'jsonb_populate_record(NULL::npc, $2 || jsonb_build_object(''id'', uuid7(), ''slug'', s)) AS r) AS made RETURNING id, slug', cols)
        USING free, row_template;
END $$;

-- Whether one of the conditions is `unconscious`, and whether one is exhaustion that kills.
CREATE FUNCTION is_unconscious(conditions jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT conditions @? '$[*].name ? (@ like_regex "^\\s*unconscious\\s*$" flag "i")'
$$;
CREATE FUNCTION is_exhausted(conditions jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT conditions @? '$[*] ? (@.name like_regex "^\\s*exhaustion\\s*$" flag "i" && @.level >= 6)'
$$;

-- How an NPC is that neither talks nor acts: `dead`, `unconscious`, or null if it is awake. A member of `stats` that is absent has its default,
-- which is alive.
CREATE FUNCTION npc_fallen(stats jsonb, conditions jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN stats @? '$.max_hp ? (@ <= 0)' THEN CASE WHEN is_unconscious(conditions) THEN 'unconscious' END
        WHEN is_exhausted(conditions) THEN 'dead'
        WHEN is_unconscious(conditions) THEN 'unconscious'
        WHEN stats @? '$.hp ? (@ <= 0)' THEN 'dead'
    END
$$;

-- The same of a character.
CREATE FUNCTION character_fallen(hp int, max_hp int, death_saves jsonb, conditions jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN max_hp <= 0 THEN CASE WHEN is_unconscious(conditions) THEN 'unconscious' END
        WHEN death_saves @? '$.failures ? (@ >= 3)' OR is_exhausted(conditions) THEN 'dead'
        WHEN hp <= 0 OR is_unconscious(conditions) THEN 'unconscious'
    END
$$;

-- The influence that a row of `owner` stands for at a moment: it grows by the hour, up to its maximum.
CREATE FUNCTION influence_of(its_owner jsonb, moment timestamptz) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT greatest(0, least((its_owner ->> 'influence_max')::double precision, (its_owner ->> 'influence_current')::double precision
        + greatest(0, extract(epoch FROM moment - (its_owner ->> 'influence_at')::timestamptz)::double precision) / 3600
            * (its_owner ->> 'influence_regen_per_hour')::double precision))
$$;

-- Spends influence if there is enough. Returns what the owner had, and whether it was spent; null for an unknown owner. The row stays
-- locked until the transaction ends, so whoever spends at the same time sees what is left.
CREATE FUNCTION spend_influence(its_tenant uuid, its_owner uuid, price double precision, OUT had double precision, OUT is_spent boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT influence_of(to_jsonb(o), now()) INTO had FROM owner o WHERE o.tenant_id = its_tenant AND o.id = its_owner FOR NO KEY UPDATE;
    is_spent := had >= price;
    IF is_spent THEN
        UPDATE owner o SET influence_current = had - price, influence_at = greatest(o.influence_at, now())
        WHERE o.tenant_id = its_tenant AND o.id = its_owner;
    END IF;
END $$;

CREATE TRIGGER c_heads AFTER UPDATE ON campaign FOR EACH ROW
    EXECUTE FUNCTION bump_heads(
    'campaign', 'id', 'name,description,settings,slug,removed_at,instructions',
    'clock', 'id', 'game_time');
CREATE TRIGGER c_heads AFTER INSERT OR DELETE OR UPDATE ON character FOR EACH ROW
    EXECUTE FUNCTION bump_heads(
    'player', 'id', 'slug,name,race,profession',
    'place', 'id', 'location,features',
    'pack', 'id', 'inventory');
CREATE TRIGGER c_fallen AFTER UPDATE OF hp, max_hp, death_saves, conditions ON character FOR EACH ROW
    WHEN (character_fallen(OLD.hp, OLD.max_hp, OLD.death_saves, OLD.conditions)
        IS DISTINCT FROM character_fallen(NEW.hp, NEW.max_hp, NEW.death_saves, NEW.conditions))
    EXECUTE FUNCTION bump_heads('player', 'id', '*');
CREATE TRIGGER d_slug AFTER INSERT OR DELETE OR UPDATE OF slug ON character FOR EACH ROW
    EXECUTE FUNCTION keep_actor_slug();
CREATE TRIGGER f_behaviors AFTER DELETE ON character FOR EACH ROW
    EXECUTE FUNCTION forget_behaviors();
CREATE TRIGGER c_heads AFTER INSERT OR DELETE OR UPDATE ON npc FOR EACH ROW
    EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,race,profession,location,faction,owner_ids,available_tools,model,instructions,post_history_instructions,authors_note,example_dialogue,scenario,greetings,behaviors',
    'mood', 'id', 'disposition,stats',
    'pack', 'id', 'inventory');
CREATE TRIGGER c_fallen AFTER UPDATE OF conditions ON npc FOR EACH ROW
    WHEN (is_unconscious(OLD.conditions) <> is_unconscious(NEW.conditions) OR is_exhausted(OLD.conditions) <> is_exhausted(NEW.conditions))
    EXECUTE FUNCTION bump_heads('mood', 'id', '*');
CREATE TRIGGER c_here AFTER INSERT OR DELETE OR UPDATE ON npc FOR EACH ROW
    EXECUTE FUNCTION bump_creatures();
CREATE TRIGGER d_slug AFTER INSERT OR DELETE OR UPDATE OF slug ON npc FOR EACH ROW
    EXECUTE FUNCTION keep_actor_slug();
CREATE TRIGGER e_owners AFTER INSERT OR UPDATE OF owner_ids ON npc FOR EACH ROW
    EXECUTE FUNCTION keep_npc_owner();
CREATE TRIGGER c_heads AFTER INSERT OR DELETE OR UPDATE ON owner FOR EACH ROW
    EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,monitored_aspect,associated_id,available_tools,model,instructions,post_history_instructions,authors_note,example_dialogue,scenario,greetings',
    'mood', 'id', 'resources');
CREATE TRIGGER d_slug AFTER INSERT OR DELETE OR UPDATE OF slug ON owner FOR EACH ROW
    EXECUTE FUNCTION keep_actor_slug();

-- Whether the AI of a whole campaign is paused, by its setting `ai_paused`.
CREATE FUNCTION all_ai_paused(settings jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(settings @? '$.ai_paused.all ? (@ == true)', false)
$$;

-- The NPCs and owners whose AI is paused alone: those whom the setting names, by id or slug. Each name is looked up in an index, because this
-- is read for every campaign with reactions that wait.
CREATE FUNCTION ai_paused_alone(its_tenant uuid, its_campaign uuid, settings jsonb) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN jsonb_typeof(settings #> '{ai_paused,entities}') = 'array' THEN ARRAY(
        SELECT a.actor_id FROM jsonb_array_elements_text(settings #> '{ai_paused,entities}') AS n (name)
        JOIN actor_slug a ON a.tenant_id = its_tenant AND a.campaign_id = its_campaign AND a.slug = n.name
        UNION ALL
        SELECT a.actor_id FROM jsonb_array_elements_text(settings #> '{ai_paused,entities}') AS n (name)
        JOIN actor_slug a ON a.tenant_id = its_tenant AND a.campaign_id = its_campaign
          AND a.actor_id = CASE WHEN n.name ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN n.name::uuid END)
    ELSE '{}' END
$$;
