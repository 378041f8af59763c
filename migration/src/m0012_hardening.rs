//! Counters of fair dice that were looked at are spent, whatever came of what was rolled with them; a token ends with its
//! character, and a visit to the table when its player leaves.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in ENDED_VISIT.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/hardening.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Visits that were ended before their time, until then.
const ENDED_VISIT: TenantTable = TenantTable {
    name: "ended_visit",
    kind: Kind::System,
    key: "id",
    columns: "id uuid NOT NULL, until timestamptz NOT NULL",
    references: &[],
    indexes: &["CREATE INDEX ended_visit_until ON ended_visit (tenant_id, until)"],
};
