//! Counters of fair dice that were looked at are spent, whatever came of what was rolled with them.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in include_str!("sql/hardening.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
