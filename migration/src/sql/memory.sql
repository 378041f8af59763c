-- Memories of NPCs and owners.

CREATE TABLE memory (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    holder_type text NOT NULL,
    holder_id uuid NOT NULL,
    npc_id uuid GENERATED ALWAYS AS (CASE WHEN holder_type = 'npc' THEN holder_id END) STORED,
    owner_id uuid GENERATED ALWAYS AS (CASE WHEN holder_type = 'owner' THEN holder_id END) STORED,
    subject_type text NOT NULL DEFAULT 'character',
    subject_id uuid NOT NULL,
    character_id uuid GENERATED ALWAYS AS (CASE WHEN subject_type = 'character' THEN subject_id END) STORED,
    text text NOT NULL,
    source text NOT NULL,
    broadcast_id uuid,
    author uuid,
    turn_id uuid,
    -- As `folded_title` of lore.
    folded_text text,
    search tsvector GENERATED ALWAYS AS (to_tsvector('simple', coalesce(folded_text, text))) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT memory_character_id_fkey FOREIGN KEY (tenant_id, character_id) REFERENCES character (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT memory_npc_id_fkey FOREIGN KEY (tenant_id, npc_id) REFERENCES npc (tenant_id, id) ON DELETE CASCADE,
    CONSTRAINT memory_owner_id_fkey FOREIGN KEY (tenant_id, owner_id) REFERENCES owner (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('memory', 'world');
CREATE INDEX memory_about ON memory (tenant_id, holder_id, subject_id, id);
CREATE INDEX memory_broadcast ON memory (tenant_id, broadcast_id) WHERE broadcast_id IS NOT NULL;
CREATE INDEX memory_broadcasts ON memory (tenant_id, campaign_id, broadcast_id, id) WHERE broadcast_id IS NOT NULL;
CREATE INDEX memory_list ON memory (tenant_id, campaign_id, id);
CREATE INDEX memory_search ON memory USING gin (search);
CREATE INDEX memory_subject ON memory (tenant_id, subject_id, id);
CREATE INDEX memory_updated ON memory (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX memory_external_ref_key ON memory (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL;

-- As `search_lore`, for memories.
CREATE FUNCTION search_memory(campaign uuid, words text, texts text[], lacked text[], rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    (SELECT t.id FROM memory t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND t.search @@ search_query(words)
       AND (texts = '{}' AND lacked = '{}' OR contains_texts(coalesce(t.folded_text, t.text), texts, lacked)) LIMIT rows_max)
    UNION ALL
    (SELECT t.id FROM memory t WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND t.campaign_id = campaign
       AND words = '' AND (texts <> '{}' OR lacked <> '{}') AND contains_texts(coalesce(t.folded_text, t.text), texts, lacked) LIMIT rows_max)
$$;

CREATE TRIGGER c_heads AFTER INSERT OR DELETE OR UPDATE ON memory FOR EACH ROW
    EXECUTE FUNCTION bump_memory();
