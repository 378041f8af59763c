//! Erasures: a person's words leave every table. See `sql/erasure.sql`.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in [ERASURE.statements(), WORD.statements()].concat() {
            db.execute_unprepared(&statement).await?;
        }
        let functions = include_str!("sql/erasure.sql").split("-- ;;");
        for statement in COLUMNS.iter().copied().chain(functions).chain(FINISH.iter().copied()) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// An erasure under way: how far it is, and what is looked for; once it is done, that it was. No campaigns: all of the tenant's.
const ERASURE: TenantTable = TenantTable {
    name: "erasure",
    kind: Kind::System,
    key: "id",
    columns: "id uuid NOT NULL, kind text NOT NULL, campaign_ids uuid[], subject_ids uuid[] NOT NULL, author uuid, \
        words text[] NOT NULL, phrases bigint NOT NULL DEFAULT 0, place int NOT NULL DEFAULT 0, seen text[], \
        pass int NOT NULL DEFAULT 1, changed_in_pass bigint NOT NULL DEFAULT 0, rows bigint NOT NULL DEFAULT 0, \
        moved_at timestamptz NOT NULL DEFAULT clock_timestamp(), done_at timestamptz",
    references: &[],
    indexes: &[
        "CREATE INDEX erasure_moved ON erasure (moved_at)",
        "CREATE INDEX erasure_under_way ON erasure (moved_at) WHERE done_at IS NULL",
    ],
};

/// What the person said, to find where it is repeated; `escaped` is the same as JSON writes it. Gone when the erasure is done.
const WORD: TenantTable = TenantTable {
    name: "erasure_word",
    kind: Kind::System,
    key: "erasure_id, hash",
    columns: "erasure_id uuid NOT NULL, hash bytea NOT NULL, word text NOT NULL, escaped text NOT NULL",
    references: &[reference("erasure_id", "erasure", "ON DELETE CASCADE")],
    indexes: &[],
};

const COLUMNS: &[&str] =
    &["ALTER TABLE journal ADD COLUMN redacted_at timestamptz", "ALTER TABLE turn ADD COLUMN redacted_at timestamptz"];

const FINISH: &[&str] = &[
    "CREATE TRIGGER a_erases BEFORE INSERT ON journal FOR EACH ROW \
     WHEN (current_setting('app.erasing', true) = 'on') EXECUTE FUNCTION journal_erases()",
    "CREATE INDEX campaign_forked_from ON campaign (tenant_id, (forked_from ->> 'campaign_id')) WHERE forked_from IS NOT NULL",
    "REVOKE ALL ON FUNCTION erase_pattern, erase_text, erase_json, erase_columns, erase_image, journal_erases, erase_readable, \
     erase_is_own, erase_note, erase_batch, erase_journal, erase_hold, erase_last, erasures_moved FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION erase_note, erase_batch, erase_hold, erase_last, erasures_moved, journal_erases TO tavernkeep_app",
];
