//! The first schema: tenants and their keys, the world, the journal, turns.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        db.execute_unprepared(ROLE).await?;
        for statement in include_str!("sql/functions.sql").split("-- ;;").filter(|s| !names_a_table_type(s)) {
            db.execute_unprepared(statement).await?;
        }
        for table in TABLES {
            for statement in table.statements() {
                db.execute_unprepared(&statement).await?;
            }
        }
        for statement in include_str!("sql/functions.sql").split("-- ;;").filter(|s| names_a_table_type(s)) {
            db.execute_unprepared(statement).await?;
        }
        for statement in TRIGGERS.iter().chain(FINISH) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// SQL-language functions are checked against the tables when made, so they follow them; trigger functions precede.
fn names_a_table_type(statement: &str) -> bool {
    !statement.contains("RETURNS trigger") || statement.contains("said public.message")
}

/// The role that every pooled connection assumes. It is the cluster's, not the database's: another database may have
/// made it a moment ago.
const ROLE: &str = "DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'tavernkeep_app') THEN
        CREATE ROLE tavernkeep_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$";

const CASCADE: &str = "ON DELETE CASCADE";

const TABLES: &[TenantTable] = &[
    TenantTable {
        name: "tenant",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL GENERATED ALWAYS AS (tenant_id) STORED, slug text NOT NULL, name text NOT NULL, \
            settings jsonb NOT NULL DEFAULT '{}', limits jsonb NOT NULL DEFAULT '{}', origins text[] NOT NULL DEFAULT '{}', \
            llm_api_key bytea, version bigint NOT NULL DEFAULT 1, updated_at timestamptz NOT NULL DEFAULT now()",
        references: &[],
        indexes: &[
            "ALTER TABLE tenant ADD CONSTRAINT tenant_id_key UNIQUE (tenant_id)",
            "CREATE UNIQUE INDEX tenant_slug_key ON tenant (slug)",
            "CREATE TRIGGER a_touch BEFORE UPDATE ON tenant FOR EACH ROW EXECUTE FUNCTION touch_row()",
        ],
    },
    TenantTable {
        name: "api_key",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, prefix text NOT NULL, hash bytea NOT NULL, name text NOT NULL DEFAULT '', \
            scopes text[] NOT NULL, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, \
            version bigint NOT NULL DEFAULT 1, updated_at timestamptz NOT NULL DEFAULT now()",
        references: &[],
        indexes: &[
            "ALTER TABLE api_key ADD CONSTRAINT api_key_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)",
            "CREATE UNIQUE INDEX api_key_prefix_key ON api_key (prefix)",
            "CREATE TRIGGER a_touch BEFORE UPDATE OF name, scopes, expires_at, revoked_at ON api_key \
             FOR EACH ROW EXECUTE FUNCTION touch_row()",
        ],
    },
    TenantTable {
        name: "feed_head",
        kind: Kind::ReadOnly,
        key: "campaign_id",
        columns: "campaign_id uuid NOT NULL, seq bigint NOT NULL, pruned_seq bigint NOT NULL DEFAULT 0",
        references: &[],
        indexes: &[],
    },
    TenantTable {
        name: "version_head",
        kind: Kind::ReadOnly,
        key: "campaign_id, key",
        columns: "campaign_id uuid NOT NULL, key text NOT NULL COLLATE \"C\", version bigint NOT NULL",
        references: &[],
        indexes: &["ALTER TABLE version_head SET (fillfactor = 70)"],
    },
    TenantTable {
        name: "journal",
        kind: Kind::ReadOnly,
        key: "campaign_id, seq",
        columns: "campaign_id uuid NOT NULL, seq bigint NOT NULL, \
            at timestamptz NOT NULL DEFAULT now(), schema_version int NOT NULL DEFAULT 1, table_name text NOT NULL, \
            row_id uuid NOT NULL, op text NOT NULL, before jsonb, after jsonb, origin text NOT NULL, key_id uuid, \
            turn_id uuid, request_id text, closes boolean NOT NULL",
        references: &[],
        indexes: &[
            "CREATE INDEX journal_row ON journal (tenant_id, row_id, seq)",
            "CREATE INDEX journal_turn ON journal (tenant_id, turn_id) WHERE turn_id IS NOT NULL",
            "CREATE CONSTRAINT TRIGGER journal_close AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW WHEN (NEW.closes) EXECUTE FUNCTION journal_close()",
        ],
    },
    TenantTable {
        name: "campaign",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, description text NOT NULL, \
            game_system text NOT NULL, game_time text, settings jsonb NOT NULL",
        references: &[],
        indexes: &[
            "ALTER TABLE campaign ADD CONSTRAINT campaign_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)",
            "CREATE UNIQUE INDEX campaign_slug_key ON campaign (tenant_id, slug)",
            "CREATE UNIQUE INDEX campaign_external_ref_key ON campaign (tenant_id, external_ref)",
        ],
    },
    TenantTable {
        name: "character",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, player_name text, \
            player_user uuid, race text NOT NULL, profession text NOT NULL, level int NOT NULL, abilities jsonb NOT NULL, \
            max_hp int NOT NULL, hp int NOT NULL, temp_hp int NOT NULL, armor_class int NOT NULL, speed int NOT NULL, \
            size text NOT NULL, skill_proficiencies jsonb NOT NULL, saving_throw_proficiencies jsonb NOT NULL, \
            weapon_proficiencies jsonb NOT NULL, features jsonb NOT NULL, weapons jsonb NOT NULL, armor jsonb, shield jsonb, \
            spellcasting_ability text, spells jsonb NOT NULL, effects jsonb NOT NULL, concentration jsonb, hit_dice jsonb, \
            death_saves jsonb NOT NULL, resistances jsonb NOT NULL, immunities jsonb NOT NULL, \
            vulnerabilities jsonb NOT NULL, spell_slots jsonb NOT NULL, resources jsonb NOT NULL, \
            conditions jsonb NOT NULL, inventory jsonb NOT NULL, location text, turn_flags jsonb NOT NULL DEFAULT '{}'",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX character_list ON character (tenant_id, campaign_id, id)",
            "CREATE INDEX character_name ON character (tenant_id, campaign_id, name, id)",
            "CREATE INDEX character_updated ON character (tenant_id, campaign_id, updated_at, id)",
            "CREATE UNIQUE INDEX character_slug_key ON character (tenant_id, campaign_id, slug)",
            "CREATE UNIQUE INDEX character_external_ref_key ON character (tenant_id, campaign_id, external_ref)",
        ],
    },
    TenantTable {
        name: "owner",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, \
            description text NOT NULL, personality_prompt text NOT NULL, monitored_aspect text NOT NULL, \
            associated_id text NOT NULL, associated_key text NOT NULL, available_tools jsonb NOT NULL, \
            reaction_threshold int NOT NULL, influence_current double precision NOT NULL, influence_max double precision NOT NULL, \
            influence_regen_per_hour double precision NOT NULL, influence_at timestamptz NOT NULL DEFAULT now()",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX owner_list ON owner (tenant_id, campaign_id, id)",
            "CREATE INDEX owner_name ON owner (tenant_id, campaign_id, name, id)",
            "CREATE INDEX owner_updated ON owner (tenant_id, campaign_id, updated_at, id)",
            "CREATE INDEX owner_aspect ON owner (tenant_id, campaign_id, monitored_aspect, associated_key)",
            "CREATE UNIQUE INDEX owner_slug_key ON owner (tenant_id, campaign_id, slug)",
            "CREATE UNIQUE INDEX owner_external_ref_key ON owner (tenant_id, campaign_id, external_ref)",
        ],
    },
    TenantTable {
        name: "npc",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, \
            description text NOT NULL, personality_prompt text NOT NULL, race text, profession text, location text, \
            faction text, owner_ids uuid[] NOT NULL, available_tools jsonb NOT NULL, stats jsonb NOT NULL, \
            conditions jsonb NOT NULL, effects jsonb NOT NULL, disposition text NOT NULL, inventory jsonb NOT NULL, \
            reaction_threshold int NOT NULL",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX npc_list ON npc (tenant_id, campaign_id, id)",
            "CREATE INDEX npc_name ON npc (tenant_id, campaign_id, name, id)",
            "CREATE INDEX npc_updated ON npc (tenant_id, campaign_id, updated_at, id)",
            "CREATE INDEX npc_place ON npc (tenant_id, campaign_id, location, id)",
            "CREATE UNIQUE INDEX npc_slug_key ON npc (tenant_id, campaign_id, slug)",
            "CREATE UNIQUE INDEX npc_external_ref_key ON npc (tenant_id, campaign_id, external_ref)",
        ],
    },
    TenantTable {
        name: "npc_owner",
        kind: Kind::System,
        key: "npc_id, owner_id",
        columns: "campaign_id uuid NOT NULL, npc_id uuid NOT NULL, owner_id uuid NOT NULL",
        references: &[
            reference("npc_id", "npc", CASCADE),
            reference("owner_id", "owner", "DEFERRABLE INITIALLY DEFERRED"),
        ],
        indexes: &["CREATE INDEX npc_owner_owner ON npc_owner (tenant_id, owner_id, npc_id)"],
    },
    TenantTable {
        name: "actor_slug",
        kind: Kind::System,
        key: "campaign_id, slug",
        columns: "campaign_id uuid NOT NULL, slug text NOT NULL, kind text NOT NULL, actor_id uuid NOT NULL",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &["CREATE INDEX actor_slug_actor ON actor_slug (tenant_id, actor_id)"],
    },
    TenantTable {
        name: "lore",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, slug text NOT NULL, title text NOT NULL, scope text NOT NULL, \
            associated_id text, associated_key text NOT NULL, content text NOT NULL, tags jsonb NOT NULL, \
            priority int NOT NULL, enabled boolean NOT NULL, secret boolean NOT NULL, known_by uuid[] NOT NULL, \
            activation text NOT NULL, keys jsonb NOT NULL, secondary_keys jsonb NOT NULL, logic text NOT NULL, \
            scan_depth int NOT NULL, ai_lock boolean NOT NULL, tokens int NOT NULL, \
            search tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(title || ' ' || tags::text || ' ' || keys::text || ' ' \
                || secondary_keys::text || ' ' || content, 100000))) STORED",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX lore_list ON lore (tenant_id, campaign_id, id)",
            "CREATE INDEX lore_title ON lore (tenant_id, campaign_id, title, id)",
            "CREATE INDEX lore_updated ON lore (tenant_id, campaign_id, updated_at, id)",
            "CREATE INDEX lore_scope ON lore (tenant_id, campaign_id, scope, associated_key, activation, priority DESC, id) \
             WHERE enabled",
            "CREATE INDEX lore_search ON lore USING gin (search)",
            "CREATE UNIQUE INDEX lore_slug_key ON lore (tenant_id, campaign_id, slug)",
            "CREATE UNIQUE INDEX lore_external_ref_key ON lore (tenant_id, campaign_id, external_ref)",
        ],
    },
    TenantTable {
        name: "memory",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, holder_type text NOT NULL, holder_id uuid NOT NULL, \
            npc_id uuid GENERATED ALWAYS AS (CASE WHEN holder_type = 'npc' THEN holder_id END) STORED, \
            owner_id uuid GENERATED ALWAYS AS (CASE WHEN holder_type = 'owner' THEN holder_id END) STORED, \
            subject_type text NOT NULL DEFAULT 'character', subject_id uuid NOT NULL, \
            character_id uuid GENERATED ALWAYS AS (CASE WHEN subject_type = 'character' THEN subject_id END) STORED, \
            text text NOT NULL, source text NOT NULL, broadcast_id uuid, author uuid, turn_id uuid, \
            search tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED",
        // A holder is of a campaign already; each reference costs every memory a look-up and a row's lock.
        references: &[
            reference("npc_id", "npc", CASCADE),
            reference("owner_id", "owner", CASCADE),
            reference("character_id", "character", CASCADE),
        ],
        indexes: &[
            "CREATE INDEX memory_about ON memory (tenant_id, holder_id, subject_id, id)",
            "CREATE INDEX memory_subject ON memory (tenant_id, subject_id, id)",
            "CREATE INDEX memory_list ON memory (tenant_id, campaign_id, id)",
            "CREATE INDEX memory_updated ON memory (tenant_id, campaign_id, updated_at, id)",
            "CREATE INDEX memory_broadcast ON memory (tenant_id, broadcast_id) WHERE broadcast_id IS NOT NULL",
            "CREATE INDEX memory_search ON memory USING gin (search)",
            "CREATE UNIQUE INDEX memory_external_ref_key ON memory (tenant_id, campaign_id, external_ref) \
             WHERE external_ref IS NOT NULL",
        ],
    },
    TenantTable {
        name: "scene",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, \
            description text NOT NULL, location text, active boolean NOT NULL, channel text, width int NOT NULL, height int NOT NULL, \
            grid jsonb NOT NULL, tokens jsonb NOT NULL, notes jsonb NOT NULL, light_sources jsonb NOT NULL",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX scene_list ON scene (tenant_id, campaign_id, id)",
            "CREATE INDEX scene_name ON scene (tenant_id, campaign_id, name, id)",
            "CREATE INDEX scene_updated ON scene (tenant_id, campaign_id, updated_at, id)",
            "CREATE UNIQUE INDEX scene_slug_key ON scene (tenant_id, campaign_id, slug)",
            "CREATE UNIQUE INDEX scene_channel_key ON scene (tenant_id, campaign_id, channel)",
            "CREATE UNIQUE INDEX scene_external_ref_key ON scene (tenant_id, campaign_id, external_ref)",
        ],
    },
    TenantTable {
        name: "message",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, session_id uuid, scene_id uuid, type text NOT NULL, \
            speaker jsonb NOT NULL, content text NOT NULL, flavor text, roll jsonb, author text NOT NULL, player_id uuid, \
            entity_id uuid, whisper_to jsonb NOT NULL, blind boolean NOT NULL, turn_id uuid, prompt_text text, \
            tokens int NOT NULL DEFAULT 0, window_start uuid",
        references: &[
            reference("campaign_id", "campaign", CASCADE),
            reference("scene_id", "scene", "ON DELETE SET NULL (scene_id)"),
            reference("player_id", "character", "ON DELETE SET NULL (player_id)"),
        ],
        indexes: &[
            "CREATE INDEX message_list ON message (tenant_id, campaign_id, id)",
            "CREATE INDEX message_scene ON message (tenant_id, scene_id) WHERE scene_id IS NOT NULL",
            "CREATE INDEX message_player ON message (tenant_id, player_id, entity_id, id) WHERE player_id IS NOT NULL",
            "CREATE UNIQUE INDEX message_external_ref_key ON message (tenant_id, campaign_id, external_ref) \
             WHERE external_ref IS NOT NULL",
        ],
    },
    TenantTable {
        name: "turn",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, kind text NOT NULL, status text NOT NULL, entity_id uuid, \
            player_id uuid, action text, on_failure text NOT NULL DEFAULT 'revert', reply_mode text NOT NULL DEFAULT 'native', \
            record json, error jsonb, revert_conflicts jsonb, key_id uuid, instance bigint NOT NULL, \
            lease_until timestamptz NOT NULL, finished_at timestamptz, undone_at timestamptz, parent_turn_id uuid, \
            cancel_requested boolean NOT NULL DEFAULT false, reverted_through bigint NOT NULL DEFAULT 0, \
            runs_before int NOT NULL DEFAULT 0",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX turn_list ON turn (tenant_id, campaign_id, id)",
            "CREATE INDEX turn_under_way ON turn (tenant_id, entity_id) WHERE status = 'running' OR status = 'queued'",
            // A player's texts are planned side by side.
            "CREATE UNIQUE INDEX turn_one_at_a_time ON turn (tenant_id, entity_id, player_id) \
             WHERE status = 'running' AND kind <> 'planner'",
        ],
    },
    TenantTable {
        name: "usage_entry",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, kind text NOT NULL, model text NOT NULL, \
            llm_calls int NOT NULL, prompt_tokens bigint NOT NULL, cached_tokens bigint NOT NULL, \
            completion_tokens bigint NOT NULL, cost_micros bigint",
        references: &[],
        indexes: &["CREATE INDEX usage_entry_time ON usage_entry (tenant_id, created_at)"],
    },
    TenantTable {
        name: "idempotency",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, key text NOT NULL, route text NOT NULL, fingerprint bytea NOT NULL, \
            state text NOT NULL, status int, headers jsonb, body bytea, turn_id uuid",
        references: &[],
        indexes: &[
            "CREATE UNIQUE INDEX idempotency_key ON idempotency (tenant_id, route, key)",
            "CREATE INDEX idempotency_age ON idempotency (tenant_id, created_at)",
            "CREATE INDEX idempotency_turn ON idempotency (tenant_id, turn_id) WHERE turn_id IS NOT NULL",
        ],
    },
];

/// Version heads of the prompt cache: for each head its name, the columns that name it, and the columns whose change
/// bumps it (`*`: any).
const TRIGGERS: &[&str] = &[
    "CREATE TRIGGER c_heads AFTER UPDATE ON campaign FOR EACH ROW \
     EXECUTE FUNCTION bump_heads(\
     'campaign', 'id', 'name,description,settings,slug', 'clock', 'id', 'game_time')",
    "CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION bump_heads(\
     'entity', 'id', 'slug,name,description,personality_prompt,race,profession,location,faction,owner_ids,available_tools', \
     'mood', 'id', 'disposition')",
    "CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON owner FOR EACH ROW EXECUTE FUNCTION bump_heads(\
     'entity', 'id', 'slug,name,description,personality_prompt,monitored_aspect,associated_id,available_tools')",
    "CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON character FOR EACH ROW EXECUTE FUNCTION bump_heads(\
     'player', 'id', 'slug,name,race,profession', 'place', 'id', 'location')",
    "CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON lore FOR EACH ROW \
     EXECUTE FUNCTION bump_heads('lore', 'scope,associated_key', '*')",
    "CREATE TRIGGER c_heads AFTER INSERT OR UPDATE OR DELETE ON memory FOR EACH ROW EXECUTE FUNCTION bump_memory()",
    // A turn writes two messages; its answer speaks for both.
    "CREATE TRIGGER c_heads AFTER INSERT ON message FOR EACH ROW WHEN (NEW.author = 'ai') EXECUTE FUNCTION bump_talk()",
    "CREATE TRIGGER c_heads_changed AFTER UPDATE OR DELETE ON message FOR EACH ROW EXECUTE FUNCTION bump_talk()",
    "CREATE TRIGGER d_slug AFTER INSERT OR UPDATE OF slug OR DELETE ON character FOR EACH ROW EXECUTE FUNCTION keep_actor_slug()",
    "CREATE TRIGGER d_slug AFTER INSERT OR UPDATE OF slug OR DELETE ON npc FOR EACH ROW EXECUTE FUNCTION keep_actor_slug()",
    "CREATE TRIGGER d_slug AFTER INSERT OR UPDATE OF slug OR DELETE ON owner FOR EACH ROW EXECUTE FUNCTION keep_actor_slug()",
    "CREATE TRIGGER b_created BEFORE INSERT ON turn FOR EACH ROW EXECUTE FUNCTION turn_created()",
    "CREATE TRIGGER e_owners AFTER INSERT OR UPDATE OF owner_ids ON npc FOR EACH ROW EXECUTE FUNCTION keep_npc_owner()",
];

/// What is kept for long and read seldom is compressed with the faster method where PostgreSQL was built with it.
const COMPRESSION: &str = "DO $$ BEGIN
    ALTER TABLE turn ALTER record SET COMPRESSION lz4;
    ALTER TABLE journal ALTER before SET COMPRESSION lz4, ALTER after SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$";

const FINISH: &[&str] = &[
    COMPRESSION,
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO tavernkeep_app",
    "REVOKE EXECUTE ON FUNCTION bump_head(uuid, uuid, text) FROM tavernkeep_app",
    "GRANT USAGE ON SCHEMA public TO tavernkeep_app",
    "DO $$ BEGIN IF NOT pg_has_role(current_user, 'tavernkeep_app', 'MEMBER') \
     THEN EXECUTE format('GRANT tavernkeep_app TO %I', current_user); END IF; END $$",
];
