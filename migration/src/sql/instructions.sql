-- What people tell models: instructions of campaigns, NPCs and owners, and the texts of cards that had no column of their own.
ALTER TABLE campaign ADD COLUMN instructions text NOT NULL DEFAULT '', ADD COLUMN pending_instructions jsonb
-- ;;
ALTER TABLE npc ADD COLUMN instructions text NOT NULL DEFAULT '', ADD COLUMN post_history_instructions text NOT NULL DEFAULT '',
    ADD COLUMN authors_note jsonb, ADD COLUMN example_dialogue text NOT NULL DEFAULT '', ADD COLUMN greetings jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN scenario text NOT NULL DEFAULT '', ADD COLUMN pending_instructions jsonb
-- ;;
ALTER TABLE owner ADD COLUMN instructions text NOT NULL DEFAULT '', ADD COLUMN post_history_instructions text NOT NULL DEFAULT '',
    ADD COLUMN authors_note jsonb, ADD COLUMN example_dialogue text NOT NULL DEFAULT '', ADD COLUMN greetings jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN scenario text NOT NULL DEFAULT '', ADD COLUMN pending_instructions jsonb
-- ;;
-- As before, but without a list of columns: a new one needs no new version of this function.
CREATE OR REPLACE FUNCTION spawn_npcs(its_tenant uuid, its_campaign uuid, template jsonb, candidates text[], how_many int)
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
END $$
-- ;;
-- Version heads. Drafts are in no prompt.
DROP TRIGGER c_heads ON campaign
-- ;;
CREATE TRIGGER c_heads AFTER UPDATE ON campaign FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'campaign', 'id', 'name,description,settings,slug,removed_at,instructions', 'clock', 'id', 'game_time')
-- ;;
DROP TRIGGER c_heads ON owner
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON owner FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,monitored_aspect,associated_id,available_tools,model,instructions,post_history_instructions,authors_note,example_dialogue,scenario,greetings', 'mood', 'id', 'resources')
-- ;;
DROP TRIGGER c_heads ON npc
-- ;;
CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION bump_heads(
    'entity', 'id', 'slug,name,description,personality_prompt,race,profession,location,faction,owner_ids,available_tools,model,instructions,post_history_instructions,authors_note,example_dialogue,scenario,greetings',
    'mood', 'id', 'disposition,stats', 'pack', 'id', 'inventory')
-- ;;
-- As before, with the campaign's instructions.
DROP FUNCTION session_facts
-- ;;
CREATE FUNCTION session_facts(its_tenant uuid, its_campaign uuid, its_session uuid, as_role text, held_campaign bigint,
    held_heads text[])
RETURNS TABLE (
    client_id text, role text, told_as text, dice text, player_id uuid, scene_id uuid, player_name text, race text, profession text, place text,
    from_seq bigint, events bigint, seq bigint, pruned bigint, seen_seq bigint, seen_event bigint,
    campaign_version bigint, campaign_name text, game_system text, game_time text, description text, settings jsonb,
    talk bigint, heads bigint[], has_fights boolean, has_news boolean, has_played boolean, instructions text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    its_scene uuid;
    its_player uuid;
BEGIN
    SELECT s.client_id, coalesce(as_role, s.role), told_as(coalesce(as_role, s.role), s.player_id), s.dice, s.player_id, s.scene_id, s.player_id, s.scene_id, st.from_seq, st.events,
           coalesce(nullif(st.world_state #>> '{active_scene,location}', ''), nullif(st.world_state #>> '{active_scene,name}', '')),
           st.combat <> '[]'
    INTO client_id, role, told_as, dice, player_id, scene_id, its_player, its_scene, from_seq, events, place, has_fights
    FROM session s JOIN session_state st ON st.tenant_id = its_tenant AND st.session_id = s.id
    WHERE s.tenant_id = its_tenant AND s.campaign_id = its_campaign AND s.id = its_session;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF place IS NULL THEN
        SELECT coalesce(nullif(c.location, ''), c.name) INTO place FROM scene c
        WHERE c.tenant_id = its_tenant AND c.campaign_id = its_campaign AND (c.id = its_scene OR c.active AND its_scene IS NULL)
        ORDER BY c.updated_at DESC, c.id LIMIT 1;
    END IF;
    IF its_player IS NOT NULL THEN
        SELECT c.name, c.race, c.profession INTO player_name, race, profession FROM character c
        WHERE c.tenant_id = its_tenant AND c.id = its_player;
    END IF;
    SELECT t.seen_seq, t.seen_event INTO seen_seq, seen_event FROM turn t
    WHERE t.tenant_id = its_tenant AND t.entity_id = its_session AND t.kind = 'gm' AND t.status IN ('succeeded', 'limit_reached')
      AND t.told_as = session_facts.told_as AND t.undone_at IS NULL AND t.seen_seq IS NOT NULL ORDER BY t.seen_seq DESC, t.seen_event DESC LIMIT 1;
    SELECT c.version, c.name, c.game_system, c.game_time, c.description, c.settings, c.instructions,
           coalesce(f.seq, 0), coalesce(f.pruned_seq, 0), coalesce(t.version, 0), has_fights OR EXISTS (
               SELECT 1 FROM encounter e WHERE e.tenant_id = its_tenant AND e.campaign_id = its_campaign AND e.status = 'active')
    INTO campaign_version, campaign_name, game_system, game_time, description, settings, instructions, seq, pruned, talk, has_fights
    FROM campaign c
    LEFT JOIN feed_head f ON f.tenant_id = its_tenant AND f.campaign_id = its_campaign
    LEFT JOIN version_head t ON t.tenant_id = its_tenant AND t.campaign_id = its_campaign
        AND t.key = 'talk:' || its_session || ':00000000-0000-0000-0000-000000000000'
    WHERE c.tenant_id = its_tenant AND c.id = its_campaign;
    IF campaign_version = held_campaign THEN
        campaign_name := NULL;
        description := NULL;
        settings := NULL;
        instructions := NULL;
    END IF;
    heads := lore_heads(its_tenant, its_campaign, held_heads);
    has_news := false;
    IF seen_seq IS NULL THEN
        has_played := EXISTS (
            SELECT 1 FROM turn t WHERE t.tenant_id = its_tenant AND t.entity_id = its_session AND t.kind = 'gm'
              AND t.status IN ('succeeded', 'limit_reached') AND t.undone_at IS NULL AND t.seen_seq IS NOT NULL);
    ELSE
        has_played := true;
        -- What its own turns did is no news.
        has_news := EXISTS (
            SELECT 1 FROM journal j WHERE j.tenant_id = its_tenant AND j.campaign_id = its_campaign AND j.seq > seen_seq
              AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.tenant_id = its_tenant AND t.id = j.turn_id
                              AND t.entity_id = its_session AND t.kind = 'gm' AND t.told_as = session_facts.told_as));
    END IF;
    RETURN NEXT;
END $$
-- ;;
REVOKE ALL ON FUNCTION session_facts FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION session_facts TO tavernkeep_app
