//! Fair dice: the server seeds of campaigns, and of tenants for rolls outside any.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in SEEDS.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/dice.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// A seed is in use until it is revealed; its counter is that of the last roll and only rises. No campaign: the tenant's own.
const SEEDS: TenantTable = TenantTable {
    name: "dice_seed",
    kind: Kind::System,
    key: "id",
    columns: "id uuid NOT NULL, campaign_id uuid, server_seed bytea NOT NULL, client_seed text NOT NULL, \
        counter bigint NOT NULL DEFAULT 0, revealed_at timestamptz",
    references: &[reference("campaign_id", "campaign", "ON DELETE CASCADE")],
    indexes: &[
        "CREATE UNIQUE INDEX dice_seed_in_use ON dice_seed (tenant_id, campaign_id) NULLS NOT DISTINCT WHERE revealed_at IS NULL",
        "CREATE INDEX dice_seed_list ON dice_seed (tenant_id, campaign_id, id)",
    ],
};
