-- What characters do, whom it concerns, and the reactions that come of it.

-- What a character did. `score` is what its type counted for at that time.
CREATE TABLE player_action (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    player_id uuid NOT NULL,
    type text NOT NULL,
    score numeric(13,3) NOT NULL,
    targets jsonb NOT NULL,
    location text,
    text text,
    source text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT player_action_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT player_action_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('player_action', 'system');
CREATE INDEX player_action_age ON player_action USING brin (created_at);
CREATE INDEX player_action_list ON player_action (tenant_id, campaign_id, id);
CREATE INDEX player_action_player ON player_action (tenant_id, player_id, id);

-- Whom an action concerned, and the reaction that was told of it.
CREATE TABLE action_concern (
    tenant_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    player_id uuid NOT NULL,
    action_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    reason text NOT NULL,
    reaction_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, entity_id, player_id, action_id),
    CONSTRAINT action_concern_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES player_action (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('action_concern', 'system');
CREATE INDEX action_concern_action ON action_concern (tenant_id, action_id);
CREATE INDEX action_concern_campaign ON action_concern (tenant_id, campaign_id);
CREATE INDEX action_concern_open ON action_concern (tenant_id, entity_id, player_id, action_id) WHERE reaction_id IS NULL;
CREATE INDEX action_concern_reaction ON action_concern (tenant_id, reaction_id, action_id) WHERE reaction_id IS NOT NULL;

-- How much a character's actions have mattered to an entity since its last reaction. `at_once`: one of them reached the immediate
-- threshold. `location_key`: where the last one happened. `due_at`: when to look again.
CREATE TABLE significance (
    tenant_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    player_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    entity_kind text NOT NULL,
    score numeric(13,3) NOT NULL,
    actions int NOT NULL,
    at_once boolean NOT NULL DEFAULT false,
    location_key text,
    cooldown_until timestamptz,
    due_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, entity_id, player_id),
    CONSTRAINT significance_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT significance_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('significance', 'system');
CREATE INDEX significance_due ON significance (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX significance_due_of_campaign ON significance (tenant_id, campaign_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX significance_list ON significance (tenant_id, campaign_id, id);
CREATE INDEX significance_player ON significance (tenant_id, player_id);

-- The queue of reactions. `state` is queued, running, done, dead (tried too often) or cancelled.
CREATE TABLE reaction (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    kind text NOT NULL,
    entity_kind text NOT NULL,
    entity_id uuid NOT NULL,
    player_id uuid NOT NULL,
    state text NOT NULL,
    score numeric(13,3) NOT NULL,
    actions int NOT NULL,
    message text,
    location_key text,
    turn_id uuid NOT NULL,
    due_at timestamptz NOT NULL,
    lease_until timestamptz,
    instance bigint,
    tries int NOT NULL,
    error jsonb,
    finished_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT reaction_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT reaction_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('reaction', 'system');
CREATE INDEX reaction_age ON reaction USING brin (created_at);
CREATE INDEX reaction_dead ON reaction (tenant_id, campaign_id, id) WHERE state = 'dead';
CREATE INDEX reaction_due ON reaction (due_at) WHERE state = 'queued';
CREATE INDEX reaction_leases ON reaction (lease_until) WHERE state = 'running';
CREATE INDEX reaction_list ON reaction (tenant_id, campaign_id, id);
CREATE INDEX reaction_of ON reaction (tenant_id, entity_id, player_id, id);
CREATE INDEX reaction_player ON reaction (tenant_id, player_id);
CREATE INDEX reaction_turn ON reaction (tenant_id, turn_id);
CREATE INDEX reaction_under_way ON reaction (tenant_id, entity_id, player_id) WHERE state IN ('queued', 'running');
CREATE INDEX reaction_waiting ON reaction (tenant_id, campaign_id, due_at, id) WHERE state = 'queued';

-- How many reactions a campaign had on a day (UTC). The nil campaign counts all of the tenant's.
CREATE TABLE reaction_day (
    tenant_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    day date NOT NULL,
    reactions bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, campaign_id, day)
);
CALL make_tenant_table('reaction_day', 'system');

-- What an entity says to a player without being asked. It waits until the player can hear it. Its messages are written when it is
-- delivered. `reverts`: whether its turn is to be reverted if the reply is dropped; false once that is done.
CREATE TABLE reply (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    reaction_id uuid NOT NULL,
    player_id uuid NOT NULL,
    entity_kind text NOT NULL,
    entity_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    narrative text NOT NULL,
    messages jsonb NOT NULL,
    location_key text,
    reverts boolean NOT NULL,
    state text NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT reply_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT reply_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('reply', 'world');
CREATE INDEX reply_age ON reply (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX reply_expiry ON reply (expires_at) WHERE state = 'pending';
CREATE INDEX reply_list ON reply (tenant_id, campaign_id, id);
CREATE INDEX reply_player ON reply (tenant_id, player_id);
CREATE INDEX reply_turn ON reply (tenant_id, turn_id);
CREATE INDEX reply_undo ON reply (ended_at) WHERE state IN ('expired', 'withheld') AND reverts;
CREATE INDEX reply_in_campaign ON reply (tenant_id, campaign_id, id) WHERE state = 'pending';
CREATE INDEX reply_waiting ON reply (tenant_id, player_id, id) WHERE state = 'pending';

-- Whether an NPC notices what happens around it. The dead do if their campaign lets them speak.
CREATE FUNCTION notices(stats jsonb, conditions jsonb, dead_speak boolean) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE npc_fallen(stats, conditions) WHEN 'dead' THEN dead_speak WHEN 'unconscious' THEN false ELSE true END
$$;

-- Who is concerned by what a character does: targets, NPCs at the same location, and the owners of what the action touches: its location, and
-- location, race, profession and faction of the character and the targets. Each once, with the first of these reasons. At most `rows_max`,
-- targets first.
--
-- `a` is an action as `report_action` takes it. `spellings` are locations with letters outside of ASCII that mean the same location:
-- `npc.location_key` has only the keys of locations in ASCII.
-- The dead and the unconscious notice nothing.
CREATE FUNCTION concerned_by(its_tenant uuid, a jsonb, rows_max int)
RETURNS TABLE (entity_kind text, entity_id uuid, slug text, name text, threshold int, immediate int, reason text) LANGUAGE sql STABLE AS $$
    WITH said AS MATERIALIZED (
        SELECT (a ->> 'campaign_id')::uuid AS campaign, a ->> 'location_key' AS place, coalesce((a ->> 'dead_speak')::boolean, false) AS dead_speak,
            ARRAY(SELECT jsonb_array_elements_text(a -> 'target_ids'))::uuid[] AS targets,
            ARRAY(SELECT jsonb_array_elements_text(a -> 'spellings')) AS spellings),
    all_of_them AS (
        SELECT 1 AS nth, 'npc' AS entity_kind, n.id, n.slug, n.name, n.reaction_threshold, n.immediate_threshold, 'target' AS reason
        FROM said s JOIN npc n ON n.tenant_id = its_tenant AND n.campaign_id = s.campaign AND n.id = ANY (s.targets)
            AND notices(n.stats, n.conditions, s.dead_speak)
        UNION ALL
        SELECT 1, 'owner', o.id, o.slug, o.name, o.reaction_threshold, o.immediate_threshold, 'target'
        FROM said s JOIN owner o ON o.tenant_id = its_tenant AND o.campaign_id = s.campaign AND o.id = ANY (s.targets)
        UNION ALL
        SELECT 2, 'owner', o.id, o.slug, o.name, o.reaction_threshold, o.immediate_threshold, o.monitored_aspect
        FROM said s CROSS JOIN LATERAL jsonb_to_recordset(a -> 'touches') AS w (aspect text, key text)
        JOIN owner o ON o.tenant_id = its_tenant AND o.campaign_id = s.campaign AND o.monitored_aspect = w.aspect
            AND o.associated_key = w.key
        UNION ALL
        SELECT 3, 'npc', n.id, n.slug, n.name, n.reaction_threshold, n.immediate_threshold, 'location'
        FROM said s CROSS JOIN LATERAL (
            SELECT * FROM npc n WHERE n.tenant_id = its_tenant AND n.campaign_id = s.campaign AND n.location_key = s.place
              AND notices(n.stats, n.conditions, s.dead_speak)
            ORDER BY n.id LIMIT rows_max) n
        UNION ALL
        SELECT 3, 'npc', n.id, n.slug, n.name, n.reaction_threshold, n.immediate_threshold, 'location'
        FROM said s CROSS JOIN LATERAL (
            SELECT * FROM npc n WHERE n.tenant_id = its_tenant AND n.campaign_id = s.campaign AND n.location_key IS NULL
              AND n.location = ANY (s.spellings) AND notices(n.stats, n.conditions, s.dead_speak) ORDER BY n.id LIMIT rows_max) n),
    each_once AS (SELECT DISTINCT ON (e.id) e.* FROM all_of_them e ORDER BY e.id, e.nth)
    SELECT e.entity_kind, e.id, e.slug, e.name, e.reaction_threshold, e.immediate_threshold, e.reason FROM each_once e ORDER BY e.nth, e.id LIMIT rows_max
$$;

-- What the names in a report of an action mean: the campaign, its settings, the character and where it is, and the targets. `subjects` says what the
-- character and the targets are, and where the targets are.
-- `without_key` has the names of locations with letters outside of ASCII, one index entry each, however many NPCs are there. No row for
-- an unknown campaign; no player for an unknown character.
--
-- Here and in `report_action` plans are made once per connection. Making them anew for each action took most of its time.
CREATE FUNCTION resolve_action(its_tenant uuid, campaign_id uuid, campaign_slug text, player_id uuid, player_slug text, names text[], ids uuid[])
RETURNS TABLE (campaign uuid, settings jsonb, player uuid, location text, is_fallen boolean, targets jsonb, subjects jsonb, without_key text[])
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
    target_ids uuid[] := '{}';
BEGIN
    SELECT c.id, c.settings INTO campaign, settings FROM campaign c
    WHERE c.tenant_id = its_tenant AND (c.id = campaign_id OR c.slug = campaign_slug);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT p.id, p.location, character_fallen(p.hp, p.max_hp, p.death_saves, p.conditions) IS NOT NULL,
        jsonb_build_array(jsonb_build_object('race', p.race, 'profession', p.profession, 'faction', p.faction))
    INTO player, location, is_fallen, subjects FROM character p
    WHERE p.tenant_id = its_tenant AND p.campaign_id = campaign AND (p.id = player_id OR p.slug = player_slug);
    targets := '[]';
    IF cardinality(names) > 0 THEN
        SELECT coalesce(jsonb_agg(jsonb_build_object('type', s.kind, 'id', s.actor_id, 'slug', s.slug)), '[]'), coalesce(array_agg(s.actor_id), '{}')
        INTO targets, target_ids FROM actor_slug s
        WHERE s.tenant_id = its_tenant AND s.campaign_id = campaign AND (s.slug = ANY (names) OR s.actor_id = ANY (ids));
        subjects := subjects || (SELECT coalesce(jsonb_agg(to_jsonb(w)), '[]') FROM (
            SELECT n.location, n.race, n.profession, n.faction FROM npc n WHERE n.tenant_id = its_tenant AND n.campaign_id = campaign AND n.id = ANY (target_ids)
            UNION SELECT p.location, p.race, p.profession, p.faction FROM character p
            WHERE p.tenant_id = its_tenant AND p.campaign_id = campaign AND p.id = ANY (target_ids)) w);
    END IF;
    without_key := ARRAY(
        WITH RECURSIVE step AS (
            (SELECT n.location AS place FROM npc n WHERE n.tenant_id = its_tenant AND n.campaign_id = campaign AND n.location_key IS NULL
               AND n.location IS NOT NULL ORDER BY n.location LIMIT 1)
            UNION ALL
            SELECT (SELECT n.location FROM npc n WHERE n.tenant_id = its_tenant AND n.campaign_id = campaign AND n.location_key IS NULL
               AND n.location > s.place ORDER BY n.location LIMIT 1) FROM step s WHERE s.place IS NOT NULL)
        SELECT step.place FROM step WHERE step.place IS NOT NULL LIMIT 2000);
    RETURN NEXT;
END $$;

-- Stores what a character did, if it concerns anybody, adds its score for everyone concerned, and queues the reactions of those for whom
-- it is enough. Returns the queued reactions. Worked example, threshold 7: move 1, look 0, say 2, move 1 make 4; then talk 5 makes 9,
-- and the reaction tells of all five.
--
-- `a` is what `Action` in the server writes, with what `queue_reaction` takes:
--   {"id": "…", "campaign_id": "…", "player_id": "…", "type": "talk", "score": 5, "targets": [{"type": "npc", "id": "…",
--    "slug": "innkeeper_bob"}], "target_ids": ["…"], "location": "Town Square", "location_key": "town_square", "spellings": [],
--    "touches": [{"aspect": "race", "key": "human"}], "text": "Good evening!", "source": "report", "cooldown_seconds": 60, "concerned_max": 200,
--    "kept_max": 50}
-- `except` lists the ids of entities for whom it does not count.
-- A player's actions are counted one after the other, and so are the scores that are looked at again. So a request may report several
-- actions, and nobody waits in a circle: the counters of the day are locked last.
CREATE FUNCTION report_action(its_tenant uuid, a jsonb) RETURNS TABLE (entity_kind text, entity_id uuid, slug text, turn_id uuid)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    its_action uuid := a ->> 'id';
    its_player uuid := a ->> 'player_id';
    its_score numeric := a ->> 'score';
    one record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(its_player::text, 0));
    FOR one IN
        WITH concerned AS MATERIALIZED (
            SELECT c.* FROM concerned_by(its_tenant, a, (a ->> 'concerned_max')::int) c
            WHERE NOT coalesce(a -> 'except', '[]') ? c.entity_id::text),
        stored AS (
            INSERT INTO player_action (tenant_id, id, campaign_id, player_id, type, score, targets, location, text, source)
            SELECT its_tenant, its_action, (a ->> 'campaign_id')::uuid, its_player, a ->> 'type', its_score, a -> 'targets', a ->> 'location',
                a ->> 'text', a ->> 'source' WHERE EXISTS (SELECT FROM concerned)),
        noted AS (
            INSERT INTO action_concern (tenant_id, entity_id, player_id, action_id, campaign_id, reason)
            SELECT its_tenant, c.entity_id, its_player, its_action, (a ->> 'campaign_id')::uuid, c.reason FROM concerned c),
        counted AS (
            INSERT INTO significance AS g (tenant_id, entity_id, player_id, id, campaign_id, entity_kind, score, actions, at_once, location_key)
            SELECT its_tenant, c.entity_id, its_player, uuid7(), (a ->> 'campaign_id')::uuid, c.entity_kind, its_score, 1,
                coalesce(its_score >= c.immediate, false), a ->> 'location_key' FROM concerned c
            ORDER BY c.entity_id
            ON CONFLICT (tenant_id, entity_id, player_id) DO UPDATE SET score = least(g.score + excluded.score, 1000000000),
                actions = g.actions + 1, at_once = g.at_once OR excluded.at_once, location_key = excluded.location_key
            RETURNING g.entity_id, g.score, g.actions, g.at_once)
        SELECT c.entity_kind, c.entity_id, c.slug, n.actions, (c.threshold > 0 AND n.score >= c.threshold) OR n.at_once AS is_over
        FROM counted n JOIN concerned c ON c.entity_id = n.entity_id ORDER BY c.entity_id
    LOOP
        -- A reaction only tells of the newest. Older ones go sixteen at a time: deleting one with each action is a quarter of its cost.
        IF one.actions > (a ->> 'kept_max')::int AND one.actions % 16 = 0 THEN
            DELETE FROM action_concern k WHERE k.tenant_id = its_tenant AND k.entity_id = one.entity_id AND k.player_id = its_player
              AND k.reaction_id IS NULL AND k.action_id < (
                SELECT o.action_id FROM action_concern o WHERE o.tenant_id = its_tenant AND o.entity_id = one.entity_id
                  AND o.player_id = its_player AND o.reaction_id IS NULL ORDER BY o.action_id DESC OFFSET (a ->> 'kept_max')::int - 1 LIMIT 1);
        END IF;
        IF one.is_over THEN
            turn_id := react_if_due(its_tenant, one.entity_id, its_player, a);
            IF turn_id IS NOT NULL THEN
                entity_kind := one.entity_kind;
                entity_id := one.entity_id;
                slug := one.slug;
                RETURN NEXT;
            END IF;
        END IF;
    END LOOP;
END $$;

-- Counts a reaction of a day, in the campaign and in the tenant, whose counter has the nil id. Returns false if a limit is reached.
CREATE FUNCTION count_reaction(its_tenant uuid, its_campaign uuid, its_day date, per_day bigint, per_tenant bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    counted record;
BEGIN
    FOR counted IN SELECT * FROM (VALUES (1, its_campaign, per_day), (2, '00000000-0000-0000-0000-000000000000'::uuid, per_tenant))
            AS c (nth, campaign, most) ORDER BY nth LOOP
        INSERT INTO reaction_day AS d (tenant_id, campaign_id, day, reactions) VALUES (its_tenant, counted.campaign, its_day, 1)
        ON CONFLICT (tenant_id, campaign_id, day) DO UPDATE SET reactions = d.reactions + 1
        WHERE counted.most = 0 OR d.reactions < counted.most;
        IF NOT FOUND THEN
            IF counted.nth = 2 THEN
                UPDATE reaction_day SET reactions = reactions - 1 WHERE tenant_id = its_tenant AND campaign_id = its_campaign AND day = its_day;
            END IF;
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- Queues a reaction and its turn, if the campaign and the tenant may have one more today. Returns the turn's id, or null.
--
-- `r` says how: {"campaign_id": "…", "kind": "significance", "entity_kind": "npc", "entity_id": "…", "player_id": "…", "score": 12,
--   "actions": 3, "message": null, "location_key": "town_square", "per_day": 500, "key_id": null}. A limit of 0 is none. The tenant's limit
-- and the reply mode come from its settings. A prayer over a limit waits for the first of the next seven days that has room.
CREATE FUNCTION queue_reaction(its_tenant uuid, r jsonb) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    its_campaign uuid := r ->> 'campaign_id';
    its_id uuid := uuid7();
    its_turn uuid := uuid7();
    today date := (now() AT TIME ZONE 'UTC')::date;
    its_day date := today;
    t record;
BEGIN
    SELECT coalesce((r.limits ->> 'reactions_per_day')::bigint, 10000) AS per_day, coalesce(r.settings #>> '{llm,reply_mode}', 'native') AS reply_mode
    INTO t FROM reacting_tenant() r;
    WHILE NOT count_reaction(its_tenant, its_campaign, its_day, (r ->> 'per_day')::bigint, t.per_day) LOOP
        IF r ->> 'kind' <> 'prayer' OR its_day >= today + 7 THEN
            RETURN NULL;
        END IF;
        its_day := its_day + 1;
    END LOOP;
    INSERT INTO reaction (tenant_id, id, campaign_id, kind, entity_kind, entity_id, player_id, state, score, actions, message,
                          location_key, turn_id, due_at, tries)
    VALUES (its_tenant, its_id, its_campaign, r ->> 'kind', r ->> 'entity_kind', (r ->> 'entity_id')::uuid, (r ->> 'player_id')::uuid, 'queued',
            (r ->> 'score')::numeric, (r ->> 'actions')::int, r ->> 'message', r ->> 'location_key', its_turn,
            CASE WHEN its_day = today THEN now() ELSE its_day AT TIME ZONE 'UTC' END, 0);
    UPDATE action_concern SET reaction_id = its_id
    WHERE r ->> 'kind' = 'significance' AND tenant_id = its_tenant AND entity_id = (r ->> 'entity_id')::uuid
      AND player_id = (r ->> 'player_id')::uuid AND reaction_id IS NULL;
    PERFORM turn_claim(its_tenant, jsonb_build_object(
        'id', its_turn, 'campaign_id', its_campaign, 'kind', r ->> 'entity_kind', 'status', 'queued', 'entity_id', r ->> 'entity_id',
        'player_id', r ->> 'player_id', 'action', coalesce(r ->> 'message', ''),
        'trigger', CASE r ->> 'kind' WHEN 'prayer' THEN 'prayer' ELSE 'reaction' END, 'reply_mode', t.reply_mode, 'on_failure', 'revert',
        'key_id', r ->> 'key_id', 'instance', -1, 'lease_seconds', 2000000000,
        'claim', jsonb_build_object('id', uuid7(), 'route', 'reactions', 'key', its_id, 'fingerprint', '')));
    PERFORM pg_notify('tavernkeep_reactions', '');
    RETURN its_turn;
END $$;

-- Whether a score that may be high enough leads to a reaction now. If it does, the score begins anew and the cooldown begins.
-- Otherwise the time to look again is stored: the end of the cooldown, or the next day when today's reactions are used up. While the
-- last reaction still waits or runs, that is its end (see `look_again`), or 15 seconds from now if its end is missed. An action that reached the
-- immediate threshold does not wait for the end of the cooldown.
--
-- The row of `significance` is locked by the caller, so one crossing is one reaction, on however many servers it happens.
CREATE FUNCTION react_if_due(its_tenant uuid, its_entity uuid, its_player uuid, a jsonb) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    s significance;
    its_turn uuid;
    later timestamptz;
BEGIN
    SELECT * INTO s FROM significance g WHERE g.tenant_id = its_tenant AND g.entity_id = its_entity AND g.player_id = its_player FOR NO KEY UPDATE;
    IF s.cooldown_until > now() AND NOT s.at_once THEN
        later := s.cooldown_until;
    ELSIF EXISTS (SELECT FROM reaction r WHERE r.tenant_id = its_tenant AND r.entity_id = its_entity AND r.player_id = its_player
                    AND r.state IN ('queued', 'running') AND r.kind = 'significance') THEN
        later := now() + interval '15 seconds';
    ELSE
        its_turn := queue_reaction(its_tenant, a || jsonb_build_object(
            'kind', 'significance', 'entity_kind', s.entity_kind, 'entity_id', its_entity, 'player_id', its_player,
            'campaign_id', s.campaign_id, 'score', s.score, 'actions', s.actions, 'message', NULL, 'location_key', s.location_key));
        later := ((now() AT TIME ZONE 'UTC')::date + 1) AT TIME ZONE 'UTC';
    END IF;
    IF its_turn IS NULL THEN
        UPDATE significance SET due_at = later WHERE tenant_id = its_tenant AND entity_id = its_entity AND player_id = its_player;
    ELSE
        UPDATE significance SET score = 0, actions = 0, at_once = false, due_at = NULL,
            cooldown_until = now() + (a ->> 'cooldown_seconds')::numeric * interval '1 second'
        WHERE tenant_id = its_tenant AND entity_id = its_entity AND player_id = its_player;
    END IF;
    RETURN its_turn;
END $$;

-- Scores whose time to look again has come, the oldest of each campaign before the second of any. Reads at most `rows_max` index entries
-- per campaign, however many scores are due.
CREATE FUNCTION significance_due(rows_max int) RETURNS TABLE (tenant_id uuid, campaign_id uuid, entity_id uuid, player_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE campaigns AS (
        (SELECT g.tenant_id, g.campaign_id FROM significance g WHERE g.due_at IS NOT NULL ORDER BY 1, 2 LIMIT 1)
        UNION ALL
        SELECT n.tenant_id, n.campaign_id FROM campaigns c CROSS JOIN LATERAL (
            SELECT g.tenant_id, g.campaign_id FROM significance g
            WHERE g.due_at IS NOT NULL AND (g.tenant_id, g.campaign_id) > (c.tenant_id, c.campaign_id) ORDER BY 1, 2 LIMIT 1) n)
    SELECT d.tenant_id, d.campaign_id, d.entity_id, d.player_id FROM campaigns c CROSS JOIN LATERAL (
        SELECT g.tenant_id, g.campaign_id, g.entity_id, g.player_id, g.due_at, row_number() OVER (ORDER BY g.due_at) AS nth FROM significance g
        WHERE g.tenant_id = c.tenant_id AND g.campaign_id = c.campaign_id AND g.due_at <= now() ORDER BY g.due_at LIMIT rows_max) d
    ORDER BY d.nth, d.due_at LIMIT rows_max
$$;

-- Looks at one score again. If it is still high enough, queues the reaction. The entity may be gone, or its threshold higher: then
-- nothing happens until the next action.
CREATE FUNCTION react_again(its_tenant uuid, its_entity uuid, its_player uuid, a jsonb) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    s significance;
    threshold int;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(its_player::text, 0)) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO s FROM significance g WHERE g.tenant_id = its_tenant AND g.entity_id = its_entity AND g.player_id = its_player
      AND g.due_at <= now() FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT e.reaction_threshold INTO threshold FROM (
        SELECT n.reaction_threshold FROM npc n WHERE n.tenant_id = its_tenant AND n.id = its_entity
        UNION ALL SELECT o.reaction_threshold FROM owner o WHERE o.tenant_id = its_tenant AND o.id = its_entity) e;
    IF NOT FOUND OR NOT (s.at_once OR coalesce(threshold > 0 AND s.score >= threshold, false)) THEN
        UPDATE significance SET due_at = NULL WHERE tenant_id = its_tenant AND entity_id = its_entity AND player_id = its_player;
        RETURN NULL;
    END IF;
    RETURN react_if_due(its_tenant, its_entity, its_player, a);
END $$;

-- The tenant of the transaction, as requests see it.
CREATE FUNCTION reacting_tenant() RETURNS TABLE (tenant_id uuid, limits jsonb, settings jsonb, tenant_version bigint, origins text[],
    llm_api_key bytea, switched_off text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.limits, t.settings, t.version, t.origins, t.llm_api_key,
        ARRAY(SELECT o.name FROM operator_switch o WHERE NOT o.enabled)
    FROM tenant t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid
$$;

-- A server takes reactions to run: those that are due. A campaign has at most `reactions_at_once_max` running (a setting, 4 by default), a
-- tenant at most `per_tenant` and half of its concurrent turns, so that players find room. Campaigns and tenants take turns. A reaction whose server died in each of
-- `tries_max` attempts is dead. One server claims at a time, so that the limits are exact. The function reads at most `per_campaign` index
-- entries of each campaign, however many reactions wait.
--
-- A connection keeps a plan that was made while the table was empty. So rows are found one by one by their keys (LATERAL), locked, and
-- written where they were found (ctid).
CREATE FUNCTION claim_reactions(server bigint, lease_seconds int, rows_max int, per_campaign int, per_tenant int, tries_max int)
RETURNS TABLE (tenant_id uuid, id uuid, campaign_id uuid, kind text, entity_kind text, entity_id uuid, player_id uuid, score float8,
    actions int, message text, location_key text, turn_id uuid, turn_status text, tries int, limits jsonb, settings jsonb, tenant_version bigint,
    origins text[], llm_api_key bytea, switched_off text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_advisory_xact_lock(1413567052, 1);
    UPDATE reaction r SET state = 'dead', finished_at = now(), error = '{"code": "lost", "message": "The server stopped during each attempt."}'
    WHERE r.ctid = ANY (ARRAY(
        SELECT l.ctid FROM reaction l WHERE l.state = 'running' AND l.lease_until < now() AND l.tries >= tries_max FOR NO KEY UPDATE SKIP LOCKED));
    RETURN QUERY
    WITH RECURSIVE busy AS (
        SELECT r.tenant_id, r.campaign_id, count(*) AS at_work FROM reaction r
        WHERE r.state = 'running' AND r.lease_until >= now() GROUP BY 1, 2),
    busy_tenant AS (SELECT b.tenant_id, sum(b.at_work) AS at_work FROM busy b GROUP BY 1),
    waiting AS (
        (SELECT r.tenant_id, r.campaign_id FROM reaction r WHERE r.state = 'queued' ORDER BY 1, 2 LIMIT 1)
        UNION ALL
        SELECT n.tenant_id, n.campaign_id FROM waiting w CROSS JOIN LATERAL (
            SELECT r.tenant_id, r.campaign_id FROM reaction r
            WHERE r.state = 'queued' AND (r.tenant_id, r.campaign_id) > (w.tenant_id, w.campaign_id) ORDER BY 1, 2 LIMIT 1) n),
    due AS (
        SELECT q.* FROM waiting w JOIN campaign c ON c.tenant_id = w.tenant_id AND c.id = w.campaign_id AND NOT all_ai_paused(c.settings)
        CROSS JOIN LATERAL (SELECT ai_paused_alone(c.tenant_id, c.id, c.settings) AS entities) p CROSS JOIN LATERAL (
            SELECT r.tenant_id, r.campaign_id, r.id, r.due_at FROM reaction r
            WHERE r.tenant_id = w.tenant_id AND r.campaign_id = w.campaign_id AND r.state = 'queued' AND r.due_at <= now()
              AND r.entity_id <> ALL (p.entities)
            ORDER BY r.due_at, r.id LIMIT per_campaign) q
        UNION ALL
        SELECT r.tenant_id, r.campaign_id, r.id, r.due_at FROM reaction r WHERE r.state = 'running' AND r.lease_until < now()),
    ready AS (
        SELECT d.tenant_id, d.campaign_id, d.id, d.due_at, coalesce(b.at_work, 0) + row_number()
            OVER (PARTITION BY d.tenant_id, d.campaign_id ORDER BY d.due_at, d.id) AS nth_of_campaign
        FROM due d LEFT JOIN busy b ON b.tenant_id = d.tenant_id AND b.campaign_id = d.campaign_id),
    fair AS (
        SELECT f.tenant_id, f.id, f.due_at, coalesce(t.at_work, 0) + row_number()
            OVER (PARTITION BY f.tenant_id ORDER BY f.nth_of_campaign, f.due_at) AS nth_of_tenant
        FROM ready f JOIN campaign c ON c.tenant_id = f.tenant_id AND c.id = f.campaign_id LEFT JOIN busy_tenant t ON t.tenant_id = f.tenant_id
        WHERE f.nth_of_campaign <= CASE WHEN c.settings @? 'strict $.reactions_at_once_max ? (@ >= 1 && @ <= 16)'
            THEN (c.settings ->> 'reactions_at_once_max')::numeric ELSE 4 END),
    chosen AS MATERIALIZED (
        SELECT f.tenant_id, f.id FROM fair f JOIN tenant n ON n.tenant_id = f.tenant_id
        WHERE f.nth_of_tenant <= least(per_tenant, CASE coalesce((n.limits ->> 'concurrent_turns')::int, 64) WHEN 0 THEN per_tenant
            ELSE greatest(1, coalesce((n.limits ->> 'concurrent_turns')::int, 64) / 2) END)
        ORDER BY f.nth_of_tenant, f.due_at LIMIT rows_max),
    -- Whoever changes a reaction at this moment, or deletes its character, holds nobody else up.
    locked AS MATERIALIZED (
        SELECT l.place FROM chosen c CROSS JOIN LATERAL (
            SELECT r.ctid AS place FROM reaction r WHERE r.tenant_id = c.tenant_id AND r.id = c.id
              AND (r.state = 'queued' OR r.state = 'running' AND r.lease_until < now()) FOR NO KEY UPDATE SKIP LOCKED) l),
    taken AS (
        UPDATE reaction r SET state = 'running', instance = server, lease_until = now() + lease_seconds * interval '1 second', tries = r.tries + 1
        WHERE r.ctid = ANY (ARRAY(SELECT l.place FROM locked l)) RETURNING r.*),
    turns AS (
        UPDATE turn t SET instance = server, lease_until = now() + lease_seconds * interval '1 second'
        WHERE t.ctid = ANY (ARRAY(SELECT l.place FROM taken k CROSS JOIN LATERAL (
            SELECT w.ctid AS place FROM turn w WHERE w.tenant_id = k.tenant_id AND w.id = k.turn_id AND w.status = 'queued' FOR NO KEY UPDATE) l))
        RETURNING t.id, t.cancel_requested OR t.stop_requested AS is_unwanted)
    SELECT k.tenant_id, k.id, k.campaign_id, k.kind, k.entity_kind, k.entity_id, k.player_id, k.score::float8, k.actions, k.message, k.location_key,
        k.turn_id, CASE WHEN u.is_unwanted THEN 'cancelling' WHEN u.id IS NOT NULL THEN 'ready' ELSE coalesce(t.status, 'gone') END,
        k.tries, n.limits, n.settings, n.version, n.origins, n.llm_api_key, ARRAY(SELECT o.name FROM operator_switch o WHERE NOT o.enabled)
    FROM taken k JOIN tenant n ON n.tenant_id = k.tenant_id LEFT JOIN turns u ON u.id = k.turn_id
    LEFT JOIN LATERAL (SELECT w.status FROM turn w WHERE w.tenant_id = k.tenant_id AND w.id = k.turn_id) t ON true;
END $$;

-- A server says that it still works on these reactions.
CREATE FUNCTION renew_reactions(server bigint, reactions uuid[], lease_seconds int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE reaction SET lease_until = now() + lease_seconds * interval '1 second'
    WHERE instance = server AND state = 'running' AND id = ANY (reactions)
$$;

-- Seconds until there is something to do: a reaction or a score is due, or a lease ends. Null if nothing waits.
CREATE FUNCTION reactions_wait() RETURNS float8 LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    -- What is paused is not due, so the first of each campaign is looked for.
    WITH RECURSIVE waiting AS (
        (SELECT r.tenant_id, r.campaign_id FROM reaction r WHERE r.state = 'queued' ORDER BY 1, 2 LIMIT 1)
        UNION ALL
        SELECT n.tenant_id, n.campaign_id FROM waiting w CROSS JOIN LATERAL (
            SELECT r.tenant_id, r.campaign_id FROM reaction r
            WHERE r.state = 'queued' AND (r.tenant_id, r.campaign_id) > (w.tenant_id, w.campaign_id) ORDER BY 1, 2 LIMIT 1) n)
    SELECT greatest(extract(epoch FROM least((
            SELECT min(q.due_at) FROM waiting w
            JOIN campaign c ON c.tenant_id = w.tenant_id AND c.id = w.campaign_id AND NOT all_ai_paused(c.settings)
            CROSS JOIN LATERAL (SELECT ai_paused_alone(c.tenant_id, c.id, c.settings) AS entities) p CROSS JOIN LATERAL (
                SELECT r.due_at FROM reaction r WHERE r.tenant_id = w.tenant_id AND r.campaign_id = w.campaign_id AND r.state = 'queued'
                  AND r.entity_id <> ALL (p.entities) ORDER BY r.due_at, r.id LIMIT 1) q),
        (SELECT min(lease_until) FROM reaction WHERE state = 'running'), (SELECT min(due_at) FROM significance WHERE due_at IS NOT NULL)) - now()), 0)::float8
$$;

-- How many reactions wait, and how many are dead, in the whole database.
CREATE FUNCTION reactions_counted() RETURNS TABLE (waiting bigint, dead bigint, oldest_seconds bigint) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'dead'),
        coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'queued' AND due_at <= now()))::bigint, 0)
    FROM reaction WHERE state IN ('queued', 'dead')
$$;

-- A server gives a reaction back that it could not complete. It is tried again at `due`, or is dead. A turn that has not begun waits for the
-- next attempt. `is_counted` is false if the attempt does not count, because only the moment was wrong. Returns false if another server has
-- the reaction now.
CREATE FUNCTION return_reaction(its_tenant uuid, who text, its_id uuid, server bigint, due timestamptz, its_state text, why jsonb, is_counted boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
    its reaction;
BEGIN
    UPDATE reaction SET state = its_state, due_at = coalesce(due, due_at), lease_until = NULL, error = why,
        tries = CASE WHEN is_counted THEN tries ELSE greatest(tries - 1, 0) END,
        finished_at = CASE WHEN its_state <> 'queued' THEN now() END
    WHERE tenant_id = its_tenant AND id = its_id AND instance = server AND state = 'running' RETURNING * INTO its;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF its_state = 'queued' THEN
        UPDATE turn SET instance = -1, lease_until = now() + interval '20000 days'
        WHERE tenant_id = its_tenant AND id = its.turn_id AND instance = server AND status = 'queued';
    ELSE
        PERFORM look_again(its_tenant, its.entity_id, its.player_id);
    END IF;
    RETURN true;
END $$;

-- Gives the score of a reaction that is ended before it ran back to its entity, which then counts its actions again.
CREATE FUNCTION restore_score(its_tenant uuid, its_reaction uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    its reaction;
BEGIN
    SELECT * INTO its FROM reaction r WHERE r.tenant_id = its_tenant AND r.id = its_reaction AND r.kind = 'significance';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE significance SET score = least(score + its.score, 1000000000), actions = actions + its.actions, cooldown_until = NULL,
        at_once = at_once OR EXISTS (
            SELECT FROM action_concern k JOIN player_action a ON a.tenant_id = its_tenant AND a.id = k.action_id
            JOIN (SELECT n.immediate_threshold FROM npc n WHERE n.tenant_id = its_tenant AND n.id = its.entity_id
                  UNION ALL SELECT o.immediate_threshold FROM owner o WHERE o.tenant_id = its_tenant AND o.id = its.entity_id) e
              ON a.score >= e.immediate_threshold
            WHERE k.tenant_id = its_tenant AND k.reaction_id = its_reaction)
    WHERE tenant_id = its_tenant AND entity_id = its.entity_id AND player_id = its.player_id;
    UPDATE action_concern SET reaction_id = NULL WHERE tenant_id = its_tenant AND reaction_id = its_reaction;
    UPDATE reaction SET score = 0, actions = 0 WHERE tenant_id = its_tenant AND id = its_reaction;
END $$;

-- Whether a turn is a reaction that its player has not heard.
CREATE FUNCTION turn_is_unheard(its_tenant uuid, its_turn uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM reaction r WHERE r.tenant_id = its_tenant AND r.turn_id = its_turn)
       AND NOT EXISTS (SELECT FROM reply p WHERE p.tenant_id = its_tenant AND p.turn_id = its_turn AND p.state = 'delivered')
$$;

-- Makes a score due that waited for the end of a reaction.
CREATE FUNCTION look_again(its_tenant uuid, its_entity uuid, its_player uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE significance SET due_at = least(due_at, CASE WHEN at_once THEN now() ELSE greatest(cooldown_until, now()) END)
    WHERE tenant_id = its_tenant AND entity_id = its_entity AND player_id = its_player AND due_at > now()
$$;

-- Cancels the waiting turn of a reaction that is deleted with its character or campaign.
CREATE FUNCTION forget_reaction() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE turn SET status = 'cancelled', finished_at = now()
    WHERE tenant_id = OLD.tenant_id AND id = OLD.turn_id AND status = 'queued';
    RETURN NULL;
END $$;

-- Deletes the scores of an NPC or owner that is deleted.
CREATE FUNCTION forget_scores() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    DELETE FROM significance WHERE tenant_id = OLD.tenant_id AND entity_id = OLD.id;
    RETURN NULL;
END $$;

-- Delivers a reply: its messages become part of the history, as those of its turn. Returns false if it no longer waits.
CREATE FUNCTION deliver_reply(its_tenant uuid, who text, its_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
    r reply;
BEGIN
    UPDATE reply SET state = 'delivered', ended_at = now() WHERE tenant_id = its_tenant AND id = its_id AND state = 'pending' AND expires_at > now()
    RETURNING * INTO r;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- The ids are of now, so that the history tells it now, and in order.
    PERFORM write_messages(its_tenant, r.campaign_id, (
        SELECT coalesce(jsonb_agg(m || jsonb_build_object('id', uuid7_at(clock_timestamp() + nth * interval '1 millisecond')) ORDER BY nth), '[]')
        FROM jsonb_array_elements(r.messages) WITH ORDINALITY AS e (m, nth)));
    RETURN true;
END $$;

-- Replies that nobody fetched in time, and dropped ones whose turn is still to be undone: the server may have stopped in between.
CREATE FUNCTION replies_expired(rows_max int) RETURNS TABLE (tenant_id uuid, id uuid) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    (SELECT r.tenant_id, r.id FROM reply r WHERE r.state = 'pending' AND r.expires_at <= now() ORDER BY r.expires_at LIMIT rows_max)
    UNION ALL
    (SELECT r.tenant_id, r.id FROM reply r WHERE r.state IN ('expired', 'withheld') AND r.reverts AND r.ended_at < now() - interval '1 minute'
     ORDER BY r.ended_at LIMIT rows_max)
$$;

-- Retention: actions, reactions and replies that are older than `older_than`, and old counters. An action goes with up to 200 rows of
-- those whom it concerned, so fewer of them go at once. Returns `rows_max` while there may be more.
CREATE FUNCTION prune_reactions(older_than interval, rows_max int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off AS $$
DECLARE
    actions_max int := greatest(rows_max / 25, 1);
    gone bigint;
    more bigint;
    replies bigint := 0;
    oldest reply;
BEGIN
    DELETE FROM player_action a USING (
        SELECT o.tenant_id, o.id FROM player_action o WHERE o.created_at < now() - older_than LIMIT actions_max) old
    WHERE a.tenant_id = old.tenant_id AND a.id = old.id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM reaction r USING (
        SELECT o.tenant_id, o.id FROM reaction o WHERE o.created_at < now() - older_than AND o.state NOT IN ('queued', 'running')
        LIMIT rows_max) old
    WHERE r.tenant_id = old.tenant_id AND r.id = old.id;
    GET DIAGNOSTICS more = ROW_COUNT;
    DELETE FROM reaction_day WHERE day < (now() AT TIME ZONE 'UTC')::date - 7;
    -- Replies are journaled, and a transaction journals rows of one campaign.
    SELECT * INTO oldest FROM reply p WHERE p.ended_at < now() - older_than AND NOT p.reverts ORDER BY p.ended_at LIMIT 1;
    IF FOUND THEN
        PERFORM set_config('app.tenant_id', oldest.tenant_id::text, true), set_config('app.who', 'system', true);
        DELETE FROM reply p WHERE p.tenant_id = oldest.tenant_id AND p.id IN (
            SELECT o.id FROM reply o WHERE o.tenant_id = oldest.tenant_id AND o.campaign_id = oldest.campaign_id
              AND o.ended_at < now() - older_than AND NOT o.reverts LIMIT rows_max);
        GET DIAGNOSTICS replies = ROW_COUNT;
    END IF;
    RETURN CASE WHEN gone = actions_max OR replies > 0 THEN rows_max ELSE more END;
END $$;

CREATE TRIGGER c_scores AFTER DELETE ON npc FOR EACH ROW
    EXECUTE FUNCTION forget_scores();
CREATE TRIGGER c_scores AFTER DELETE ON owner FOR EACH ROW
    EXECUTE FUNCTION forget_scores();
CREATE TRIGGER c_turn AFTER DELETE ON reaction FOR EACH ROW WHEN ((old.state = ANY (ARRAY['queued', 'running'])))
    EXECUTE FUNCTION forget_reaction();

-- When a pause ends, what waited is due.
CREATE FUNCTION wake_reactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('tavernkeep_reactions', '');
    RETURN NULL;
END $$;
CREATE TRIGGER c_paused AFTER UPDATE OF settings ON campaign FOR EACH ROW
    WHEN (old.settings -> 'ai_paused' IS DISTINCT FROM new.settings -> 'ai_paused') EXECUTE FUNCTION wake_reactions();
