-- What owners spend, what they have, and lore that follows creatures and items. A comment of two semicolons ends each statement.

ALTER TABLE owner ADD COLUMN resources jsonb NOT NULL DEFAULT '[]'
-- ;;
-- The influence that a row of `owner` stands for at a moment: it grows by the hour, up to its maximum.
CREATE FUNCTION influence_of(its_owner jsonb, moment timestamptz) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT greatest(0, least((its_owner ->> 'influence_max')::double precision, (its_owner ->> 'influence_current')::double precision
        + greatest(0, extract(epoch FROM moment - (its_owner ->> 'influence_at')::timestamptz)::double precision) / 3600
            * (its_owner ->> 'influence_regen_per_hour')::double precision))
$$
-- ;;
-- Spends influence if there is enough. Returns what the owner had, and whether it was spent; null for an unknown owner. The row stays
-- locked until the transaction ends, so whoever spends at the same time sees what is left.
CREATE FUNCTION spend_influence(its_tenant uuid, its_owner uuid, price double precision, OUT had double precision, OUT is_spent boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT influence_of(to_jsonb(o), now()) INTO had FROM owner o WHERE o.tenant_id = its_tenant AND o.id = its_owner FOR UPDATE;
    is_spent := had >= price;
    IF is_spent THEN
        UPDATE owner o SET influence_current = had - price, influence_at = greatest(o.influence_at, now())
        WHERE o.tenant_id = its_tenant AND o.id = its_owner;
    END IF;
END $$
-- ;;
-- What taking one row of the journal back would do to a row as it is: what it is to hold again, none if it is to go, and what stands
-- in the way. What the turn `but_of` made is in nobody's way. A column is put back if it still holds what was left in it; `hp` and
-- `temp_hp` go back by their difference. Influence goes back by what was spent, whatever has grown since. Who has memories since, or
-- has spoken, does not go: that would go as well. `gone` is no conflict: a new row that somebody else has taken away already.
CREATE OR REPLACE FUNCTION revert_plan(entry journal, now_row jsonb, but_of uuid, OUT wanted jsonb, OUT column_names text[], OUT reason text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    col text;
BEGIN
    column_names := '{}';
    IF entry.redacted_at IS NOT NULL THEN
        reason := 'redacted';
    ELSIF entry.op = 'insert' THEN
        IF now_row IS NULL THEN
            reason := 'gone';
        -- What is searched for follows from the rest.
        ELSIF now_row - '{version,updated_at,search}'::text[] IS DISTINCT FROM entry.after - '{version,updated_at,search}'::text[] THEN
            reason := 'changed_since';
        ELSIF entry.table_name IN ('character', 'npc', 'owner') AND (
            EXISTS (SELECT FROM memory m WHERE m.tenant_id = tenant AND m.holder_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)
            OR EXISTS (SELECT FROM memory m WHERE m.tenant_id = tenant AND m.subject_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)
            OR EXISTS (SELECT FROM message m WHERE m.tenant_id = tenant AND m.player_id = entry.row_id AND m.turn_id IS DISTINCT FROM but_of)) THEN
            reason := 'used_since';
        END IF;
    ELSIF entry.op = 'update' THEN
        IF now_row IS NULL THEN
            reason := 'deleted_since';
            RETURN;
        END IF;
        wanted := '{}';
        FOR col IN SELECT k FROM jsonb_object_keys(entry.after) AS k
                   WHERE entry.after -> k IS DISTINCT FROM entry.before -> k AND k NOT IN ('version', 'updated_at', 'search', 'influence_at') LOOP
            IF col = 'influence_current' THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, least((now_row ->> 'influence_max')::double precision,
                    (now_row ->> col)::double precision
                    + influence_of(entry.before, (entry.after ->> 'influence_at')::timestamptz)
                    - (entry.after ->> col)::double precision)));
            ELSIF col IN ('hp', 'temp_hp') THEN
                wanted := wanted || jsonb_build_object(col, greatest(0, (now_row ->> col)::numeric
                    + (entry.before ->> col)::numeric - (entry.after ->> col)::numeric));
            ELSIF now_row -> col IS NOT DISTINCT FROM entry.after -> col THEN
                wanted := wanted || jsonb_build_object(col, entry.before -> col);
            ELSE
                column_names := column_names || col;
                reason := 'changed_since';
            END IF;
        END LOOP;
    ELSIF now_row IS NOT NULL THEN
        reason := 'created_since';
    ELSE
        wanted := entry.before;
    END IF;
END $$
-- ;;
-- NPCs of one kind, each with a slug of its own: `template` is a row without what is each one's own. No row if too few of the
-- candidates are free.
CREATE FUNCTION spawn_npcs(its_tenant uuid, its_campaign uuid, template jsonb, candidates text[], how_many int)
RETURNS TABLE (npc_id uuid, npc_slug text) LANGUAGE plpgsql AS $$
DECLARE
    first_free text := free_slug(its_tenant, its_campaign, 'actor_slug', candidates);
    free text[] := ARRAY(
        SELECT c FROM unnest(candidates) WITH ORDINALITY AS wanted (c, n) WHERE NOT EXISTS (
            SELECT FROM actor_slug a WHERE a.tenant_id = its_tenant AND a.campaign_id = its_campaign AND a.slug = c)
        ORDER BY n LIMIT how_many);
BEGIN
    IF first_free IS NULL OR cardinality(free) < how_many THEN
        RETURN;
    END IF;
    -- Without `location_key`, which is generated.
    RETURN QUERY INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, race, profession, location, faction, owner_ids,
        available_tools, stats, conditions, effects, disposition, inventory, reaction_threshold, created_at, version, updated_at, extensions, external_ref)
    SELECT r.tenant_id, r.id, r.campaign_id, r.slug, r.name, r.description, r.personality_prompt, r.race, r.profession, r.location, r.faction, r.owner_ids,
        r.available_tools, r.stats, r.conditions, r.effects, r.disposition, r.inventory, r.reaction_threshold, r.created_at, r.version, r.updated_at, r.extensions, r.external_ref
    FROM unnest(free) AS s, jsonb_populate_record(NULL::npc, template || jsonb_build_object(
        'tenant_id', its_tenant, 'campaign_id', its_campaign, 'id', uuid7(), 'slug', s, 'version', 1, 'created_at', now(),
        'updated_at', now(), 'external_ref', NULL)) AS r
    RETURNING npc.id, npc.slug;
END $$
-- ;;
-- Version heads. Resources, stat blocks and features are told with a turn (`mood`, `place`), so they leave the base prompt as it is.
DROP TRIGGER c_heads ON owner
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON owner FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,monitored_aspect,associated_id,available_tools',
    'mood', 'id', 'resources')
-- ;;
DROP TRIGGER c_heads ON npc
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,race,profession,location,faction,owner_ids,available_tools',
    'mood', 'id', 'disposition,stats', 'pack', 'id', 'inventory')
-- ;;
DROP TRIGGER c_heads ON character
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON character FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'player', 'id', 'slug,name,race,profession', 'place', 'id', 'location,features', 'pack', 'id', 'inventory')
-- ;;
-- Lore of creatures and items can wake in any prompt of its campaign: one head for all of a kind.
CREATE TRIGGER c_kind_new AFTER INSERT ON lore FOR EACH ROW WHEN (NEW.scope IN ('creature', 'item'))
EXECUTE FUNCTION bump_heads('lore', 'scope', '*')
-- ;;
CREATE TRIGGER c_kind_changed AFTER UPDATE ON lore FOR EACH ROW
WHEN (OLD.scope IN ('creature', 'item') OR NEW.scope IN ('creature', 'item')) EXECUTE FUNCTION bump_heads('lore', 'scope', '*')
-- ;;
CREATE TRIGGER c_kind_gone AFTER DELETE ON lore FOR EACH ROW WHEN (OLD.scope IN ('creature', 'item'))
EXECUTE FUNCTION bump_heads('lore', 'scope', '*')
-- ;;
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
END $$
-- ;;
CREATE TRIGGER c_here AFTER INSERT OR UPDATE OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION bump_creatures()
-- ;;
REVOKE ALL ON FUNCTION influence_of, spend_influence, spawn_npcs, bump_creatures FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION influence_of, spend_influence, spawn_npcs, bump_creatures TO tavernkeep_app
