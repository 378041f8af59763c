//! What several at once, and a database that goes away for a moment, are not to break: slugs made of names, turns that go on.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in include_str!("sql/steadiness.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
