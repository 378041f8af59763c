//! Sessions: a frontend at the table, what it last told of its world, and what its turns have seen.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for table in TABLES {
            for statement in table.statements() {
                db.execute_unprepared(&statement).await?;
            }
        }
        let functions = include_str!("sql/sessions.sql").split("-- ;;");
        for statement in TURNS.iter().copied().chain(functions).chain(GRANTS.iter().copied()) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

const CASCADE: &str = "ON DELETE CASCADE";

const TABLES: &[TenantTable] = &[
    TenantTable {
        name: "session",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, client_id text NOT NULL, role text NOT NULL, dice text NOT NULL, \
            player_id uuid, scene_id uuid",
        references: &[
            reference("campaign_id", "campaign", CASCADE),
            reference("player_id", "character", "ON DELETE SET NULL (player_id)"),
            reference("scene_id", "scene", "ON DELETE SET NULL (scene_id)"),
        ],
        indexes: &[
            "CREATE INDEX session_list ON session (tenant_id, campaign_id, id)",
            "CREATE INDEX session_updated ON session (tenant_id, campaign_id, updated_at, id)",
            "CREATE INDEX session_player ON session (tenant_id, player_id) WHERE player_id IS NOT NULL",
            "CREATE INDEX session_scene ON session (tenant_id, scene_id) WHERE scene_id IS NOT NULL",
            "CREATE UNIQUE INDEX session_client_key ON session (tenant_id, campaign_id, client_id)",
            "CREATE UNIQUE INDEX session_external_ref_key ON session (tenant_id, campaign_id, external_ref)",
        ],
    },
    // What the frontend says of its own world: replaced whole and often, so not journaled. `events` numbers the last event;
    // `from_seq` is where the campaign's feed stood when the session began.
    TenantTable {
        name: "session_state",
        kind: Kind::System,
        key: "session_id",
        columns: "session_id uuid NOT NULL, campaign_id uuid NOT NULL, world_state jsonb, world_state_at timestamptz, \
            combat jsonb NOT NULL DEFAULT '[]', combat_at timestamptz, events bigint NOT NULL DEFAULT 0, \
            from_seq bigint NOT NULL DEFAULT 0",
        references: &[reference("session_id", "session", CASCADE)],
        indexes: &["CREATE INDEX session_state_combat ON session_state (tenant_id, campaign_id, combat_at)"],
    },
    // What changed on the frontend's side, each as a piece of a delta, numbered in the order of commits.
    TenantTable {
        name: "session_event",
        kind: Kind::System,
        key: "session_id, number",
        columns: "session_id uuid NOT NULL, number bigint NOT NULL, delta jsonb NOT NULL",
        references: &[reference("session_id", "session", CASCADE)],
        indexes: &[],
    },
];

/// A game master's turn has its session as entity. What it was told reaches up to `seen_seq` in the campaign's feed and
/// `seen_event` in the session's events: the cursor of the session is that of its completed turns. An AI that is something else for
/// a turn, or from then on, reads another conversation and has another cursor: those of `told_as`.
const TURNS: &[&str] = &[
    "ALTER TABLE turn ADD COLUMN seen_seq bigint, ADD COLUMN seen_event bigint, ADD COLUMN told_as text",
    "ALTER TABLE message ADD COLUMN told_as text",
    "CREATE UNIQUE INDEX turn_one_at_a_time_in_session ON turn (tenant_id, entity_id) WHERE status = 'running' AND kind = 'gm'",
    "CREATE INDEX turn_seen ON turn (tenant_id, entity_id, told_as, seen_seq DESC, seen_event DESC) WHERE kind = 'gm'",
    "CREATE INDEX message_session ON message (tenant_id, session_id, id) WHERE session_id IS NOT NULL",
];

const GRANTS: &[&str] = &[
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION told_as(text, uuid), session_facts(uuid, uuid, uuid, text, bigint, text[]), lore_heads(uuid, uuid, text[]), \
     session_turn_open(uuid, text, uuid, text, uuid, uuid, text, uuid, text, text, text, uuid, bigint, int, uuid, text, text, bytea), \
     write_messages(uuid, uuid, jsonb) TO tavernkeep_app",
];
