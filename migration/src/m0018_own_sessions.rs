//! Where one is signed in: a list of the own sessions of the editor, and an end to each.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in include_str!("sql/own_sessions.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
