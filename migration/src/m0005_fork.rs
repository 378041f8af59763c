//! Forks: where a campaign came from, what encounters were, and the functions that copy.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in PAST.statements() {
            db.execute_unprepared(&statement).await?;
        }
        let functions = include_str!("sql/fork.sql").split("-- ;;");
        for statement in COLUMNS.iter().copied().chain(functions).chain(FINISH.iter().copied()) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// What was taken out of encounters, or went with them: a row of the log, a member as it was, the beginning. It was there from
/// `since_at` to `until_at`, moments of transactions that the journal knows as well.
const PAST: TenantTable = TenantTable {
    name: "encounter_past",
    kind: Kind::ReadOnly,
    key: "id",
    columns: "id uuid NOT NULL DEFAULT uuid7(), campaign_id uuid NOT NULL, encounter_id uuid NOT NULL, kind text NOT NULL, \
        content json NOT NULL, since_at timestamptz NOT NULL, until_at timestamptz NOT NULL DEFAULT now()",
    references: &[reference("campaign_id", "campaign", "ON DELETE CASCADE")],
    indexes: &[
        "CREATE INDEX encounter_past_campaign ON encounter_past (tenant_id, campaign_id, kind)",
        "CREATE INDEX encounter_past_until ON encounter_past (tenant_id, until_at)",
    ],
};

/// `since_at`: the transaction that made the member what it is.
const COLUMNS: &[&str] = &[
    "ALTER TABLE campaign ADD COLUMN forked_from jsonb",
    "ALTER TABLE encounter_member ADD COLUMN since_at timestamptz NOT NULL DEFAULT now()",
    "UPDATE encounter_member SET since_at = created_at",
];

const FINISH: &[&str] = &[
    "CREATE TRIGGER f_past BEFORE DELETE ON encounter FOR EACH ROW EXECUTE FUNCTION keep_encounter_past()",
    "CREATE TRIGGER f_past AFTER DELETE ON encounter_log FOR EACH ROW EXECUTE FUNCTION keep_log_past()",
    "CREATE TRIGGER f_past AFTER UPDATE OF committed_at OR DELETE ON encounter_member \
     FOR EACH ROW EXECUTE FUNCTION keep_member_past()",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION fork_id(uuid, bigint, bigint), fork_text(text, uuid, uuid, bigint, bigint), \
     fork_campaign(uuid, uuid, bigint, timestamptz, text, text, jsonb, text[]), \
     fork_encounters(uuid, uuid, uuid, bigint, bigint, bigint), keep_encounter_past(), keep_log_past(), keep_member_past(), \
     prune_encounter_past(interval, int) TO tavernkeep_app",
];
