//! Turns are taken back in steps: how far each is, since when, and why it does not go on. See `sql/reverts.sql`.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in COLUMNS.iter().copied().chain(include_str!("sql/reverts.sql").split("-- ;;")) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

const COLUMNS: &[&str] = &[
    // What becomes of it once it is taken back: `failed`, `cancelled` or `undone`. Below `revert_next` nothing is taken back yet; a
    // turn without one has not begun. `revert_stuck` counts the failures that come from a row and not from the moment.
    "ALTER TABLE turn ADD COLUMN revert_as text, ADD COLUMN revert_since timestamptz, ADD COLUMN revert_next bigint, \
     ADD COLUMN revert_total int, ADD COLUMN revert_done int NOT NULL DEFAULT 0, ADD COLUMN revert_tries int NOT NULL DEFAULT 0, \
     ADD COLUMN revert_stuck int NOT NULL DEFAULT 0, ADD COLUMN revert_try_at timestamptz, ADD COLUMN revert_error text, \
     ADD COLUMN revert_conflicts_total int NOT NULL DEFAULT 0",
    "CREATE INDEX turn_undoing ON turn (tenant_id, id) WHERE revert_as = 'undone'",
    // A step begins where the last one ended.
    "CREATE INDEX journal_turn_seq ON journal (tenant_id, turn_id, seq) WHERE turn_id IS NOT NULL",
    "DROP INDEX journal_turn",
    // When the youngest of the rows was written that are pruned. Of those pruned before this is kept, the oldest row that is left knows.
    "ALTER TABLE feed_head ADD COLUMN pruned_at timestamptz",
    "UPDATE feed_head h SET pruned_at = coalesce((SELECT j.at FROM journal j WHERE j.tenant_id = h.tenant_id \
         AND j.campaign_id = h.campaign_id ORDER BY j.seq LIMIT 1), now()) WHERE h.pruned_seq > 0",
];
