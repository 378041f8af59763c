-- Scenes, and what is said in them.

CREATE TABLE scene (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    location text,
    active boolean NOT NULL,
    channel text,
    width int NOT NULL,
    height int NOT NULL,
    grid jsonb NOT NULL,
    tokens jsonb NOT NULL,
    notes jsonb NOT NULL,
    light_sources jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT scene_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('scene', 'world');
CREATE INDEX scene_list ON scene (tenant_id, campaign_id, id);
CREATE INDEX scene_name ON scene (tenant_id, campaign_id, name COLLATE natural_order, id);
CREATE INDEX scene_updated ON scene (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX scene_channel_key ON scene (tenant_id, campaign_id, channel);
CREATE UNIQUE INDEX scene_external_ref_key ON scene (tenant_id, campaign_id, external_ref);
CREATE UNIQUE INDEX scene_slug_key ON scene (tenant_id, campaign_id, slug);

CREATE TABLE message (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    session_id uuid,
    scene_id uuid,
    type text NOT NULL,
    speaker jsonb NOT NULL,
    content text NOT NULL,
    flavor text,
    roll jsonb,
    author text NOT NULL,
    player_id uuid,
    entity_id uuid,
    whisper_to jsonb NOT NULL,
    blind boolean NOT NULL,
    turn_id uuid,
    prompt_text text,
    tokens int NOT NULL DEFAULT 0,
    window_start uuid,
    told_as text,
    -- Of an event of the world: until when prompts tell it, and for whom: {"until": "…", "audience": ["zone:town_square", "<the owner's id>"]}.
    event jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT message_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT message_player_id_fkey FOREIGN KEY (tenant_id, player_id) REFERENCES character (tenant_id, id) ON DELETE SET NULL (player_id),
    CONSTRAINT message_scene_id_fkey FOREIGN KEY (tenant_id, scene_id) REFERENCES scene (tenant_id, id) ON DELETE SET NULL (scene_id)
);
CALL make_tenant_table('message', 'world');
CREATE INDEX message_event ON message (tenant_id, campaign_id, created_at) WHERE event IS NOT NULL;
CREATE INDEX message_list ON message (tenant_id, campaign_id, id);
CREATE INDEX message_player ON message (tenant_id, player_id, entity_id, id) WHERE player_id IS NOT NULL;
CREATE INDEX message_scene ON message (tenant_id, scene_id) WHERE scene_id IS NOT NULL;
CREATE INDEX message_session ON message (tenant_id, session_id, id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX message_external_ref_key ON message (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL;

-- Writes messages in their order. Leaves out a message whose `external_ref` the campaign already has, and the scene of a message if it is gone.
-- Returns the ids of those that were written. (A function's rows come in the order of its elements, and are inserted in that order.)
CREATE FUNCTION write_messages(its_tenant uuid, its_campaign uuid, messages jsonb) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
BEGIN
    IF messages = '[]' THEN
        RETURN '{}';
    END IF;
    WITH written AS (
        INSERT INTO message (tenant_id, campaign_id, id, session_id, scene_id, type, speaker, content, flavor, roll, author,
            player_id, entity_id, whisper_to, blind, turn_id, prompt_text, tokens, window_start, told_as, event, extensions, external_ref)
        SELECT its_tenant, its_campaign, m.id, m.session_id,
            (SELECT s.id FROM scene s WHERE s.tenant_id = its_tenant AND s.id = m.scene_id), m.type, m.speaker, m.content, m.flavor,
            m.roll, m.author, m.player_id, m.entity_id, m.whisper_to, m.blind, m.turn_id, m.prompt_text, m.tokens, m.window_start,
            m.told_as, m.event, m.extensions, m.external_ref
        FROM jsonb_to_recordset(messages) AS m (
            id uuid, session_id uuid, scene_id uuid, type text, speaker jsonb, content text, flavor text, roll jsonb, author text,
            player_id uuid, entity_id uuid, whisper_to jsonb, blind boolean, turn_id uuid, prompt_text text, tokens int,
            window_start uuid, told_as text, event jsonb, extensions jsonb, external_ref text)
        ON CONFLICT (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL DO NOTHING RETURNING id)
    SELECT array_agg(w.id) INTO ids FROM written w;
    RETURN coalesce(ids, '{}');
END $$;

CREATE TRIGGER c_heads AFTER DELETE OR UPDATE OF slug, channel ON scene FOR EACH ROW
    EXECUTE FUNCTION bump_heads('scene', 'id', 'slug,channel');
CREATE TRIGGER c_heads AFTER INSERT ON message FOR EACH ROW WHEN ((new.author = 'ai'))
    EXECUTE FUNCTION bump_talk();
CREATE TRIGGER c_events AFTER INSERT ON message FOR EACH ROW WHEN ((new.event IS NOT NULL))
    EXECUTE FUNCTION bump_heads('events', 'campaign_id', '*');
CREATE TRIGGER c_events_changed AFTER DELETE OR UPDATE ON message FOR EACH ROW WHEN ((old.event IS NOT NULL))
    EXECUTE FUNCTION bump_heads('events', 'campaign_id', '*');
CREATE TRIGGER c_heads_changed AFTER DELETE OR UPDATE ON message FOR EACH ROW
    EXECUTE FUNCTION bump_talk();
