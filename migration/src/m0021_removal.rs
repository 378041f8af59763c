//! Deleting a campaign of any size: it leaves at once, and its rows go in steps.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in REMOVAL.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/removal.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// A campaign that has left and whose rows are going: how many went, and if the last attempt failed, with which SQLSTATE, how many did
/// in a row and when the next one is. It goes with the campaign.
const REMOVAL: TenantTable = TenantTable {
    name: "campaign_removal",
    kind: Kind::ReadOnly,
    key: "campaign_id",
    columns: "campaign_id uuid NOT NULL, rows bigint NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0, failed text, \
        next_at timestamptz NOT NULL DEFAULT now()",
    references: &[reference("campaign_id", "campaign", "ON DELETE CASCADE")],
    indexes: &[],
};
