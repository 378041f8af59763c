-- Sessions of frontends: what each last said of its own world, and what happened there.

CREATE TABLE session (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    client_id text NOT NULL,
    role text NOT NULL,
    dice text NOT NULL,
    player_id uuid,
    scene_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT session_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT session_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE SET NULL (player_id),
    CONSTRAINT session_scene_id_fkey FOREIGN KEY (tenant_id, scene_id) REFERENCES scene (tenant_id, id) ON DELETE SET NULL (scene_id)
);
CALL make_tenant_table('session', 'world');
CREATE INDEX session_list ON session (tenant_id, campaign_id, id);
CREATE INDEX session_player ON session (tenant_id, player_id) WHERE player_id IS NOT NULL;
CREATE INDEX session_scene ON session (tenant_id, scene_id) WHERE scene_id IS NOT NULL;
CREATE INDEX session_updated ON session (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX session_client_key ON session (tenant_id, campaign_id, client_id);
CREATE UNIQUE INDEX session_external_ref_key ON session (tenant_id, campaign_id, external_ref);

-- What the frontend last said of its own world. It is replaced often and as a whole, so it is not in the journal. `events` is the number
-- of the last event, and `from_seq` is where the campaign's feed was when the session began.
CREATE TABLE session_state (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    world_state jsonb,
    world_state_at timestamptz,
    combat jsonb NOT NULL DEFAULT '[]',
    combat_at timestamptz,
    events bigint NOT NULL DEFAULT 0,
    from_seq bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_id),
    CONSTRAINT session_state_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES session (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('session_state', 'system');
CREATE INDEX session_state_combat ON session_state (tenant_id, campaign_id, combat_at);

-- What changed on the side of the frontend, each as a part of a delta, numbered in the order of commits.
CREATE TABLE session_event (
    tenant_id uuid NOT NULL,
    session_id uuid NOT NULL,
    number bigint NOT NULL,
    delta jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_id, number),
    CONSTRAINT session_event_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES session (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('session_event', 'system');

-- What a session's AI is for a turn, and for whom if it plays a character.
CREATE FUNCTION told_as(role text, player uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE role WHEN 'player' THEN 'player:' || coalesce(player::text, '') ELSE role END
$$;

-- What the prompt of a session's turn is built from at this moment: the session, its place in the feed, the campaign (its texts only if the
-- caller does not hold this version), the version of its conversation, and the versions of the lore that the caller holds. No row if there is
-- no such session. Each statement is an index lookup with a snapshot of its own, so after a turn has its place it reads nothing older.
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
END $$;
