//! The schema of the first release: one file for each topic, in the order in which they are run. Its statements may use
//! what earlier files made; the bodies of its functions may use anything.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

const TOPICS: &[&str] = &[
    include_str!("sql/names.sql"),
    include_str!("sql/roles.sql"),
    include_str!("sql/tenants.sql"),
    include_str!("sql/accounts.sql"),
    include_str!("sql/journal.sql"),
    include_str!("sql/heads.sql"),
    include_str!("sql/world.sql"),
    include_str!("sql/lore.sql"),
    include_str!("sql/memory.sql"),
    include_str!("sql/messages.sql"),
    include_str!("sql/table.sql"),
    include_str!("sql/sessions.sql"),
    include_str!("sql/usage.sql"),
    include_str!("sql/servers.sql"),
    include_str!("sql/idempotency.sql"),
    include_str!("sql/turns.sql"),
    include_str!("sql/reverts.sql"),
    include_str!("sql/edits.sql"),
    include_str!("sql/dice.sql"),
    include_str!("sql/encounters.sql"),
    include_str!("sql/reactions.sql"),
    include_str!("sql/bridge.sql"),
    include_str!("sql/fork.sql"),
    include_str!("sql/removal.sql"),
    include_str!("sql/erasure.sql"),
    include_str!("sql/grants.sql"),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        // The body of a function may name what a later file makes.
        db.execute_unprepared("SET LOCAL check_function_bodies = off").await?;
        for topic in TOPICS {
            db.execute_unprepared(topic).await?;
        }
        Ok(())
    }
}
