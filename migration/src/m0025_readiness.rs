//! A server may ask whether its migrations are made.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("GRANT SELECT ON seaql_migrations TO tavernkeep_app").await?;
        Ok(())
    }
}
