//! The bridge: which frontend is connected where, and what servers ask of frontends that are connected to another one.

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
        for statement in include_str!("sql/bridge.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

const CASCADE: &str = "ON DELETE CASCADE";

const TABLES: &[TenantTable] = &[
    // A session's frontend: the newest connection alone. `left_at` is when it went; the row stays for a while, since it says that
    // what the frontend told last may have changed unseen.
    TenantTable {
        name: "bridge_connection",
        kind: Kind::System,
        key: "session_id",
        columns: "session_id uuid NOT NULL, connection_id uuid NOT NULL, instance bigint NOT NULL, \
            seen_at timestamptz NOT NULL DEFAULT now(), left_at timestamptz",
        references: &[reference("session_id", "session", CASCADE)],
        indexes: &["CREATE INDEX bridge_connection_of_server ON bridge_connection (instance) WHERE left_at IS NULL"],
    },
    // What the server `asker` wants of a connection that the server `instance` holds; a row lives for seconds.
    TenantTable {
        name: "bridge_mail",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, session_id uuid NOT NULL, connection_id uuid NOT NULL, \
            asker bigint NOT NULL, instance bigint NOT NULL, kind text NOT NULL, data jsonb NOT NULL, taken_at timestamptz, \
            reply jsonb",
        references: &[reference("session_id", "session", CASCADE)],
        indexes: &[
            "CREATE INDEX bridge_mail_for_server ON bridge_mail (instance, created_at) WHERE taken_at IS NULL",
            "CREATE INDEX bridge_mail_session ON bridge_mail (tenant_id, session_id)",
        ],
    },
];
