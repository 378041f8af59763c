//! Files that wait for a person to say that they are to be imported.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in PENDING.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in FINISH {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// A file between its report and the word that it is to be imported; one for each user, for an hour.
const PENDING: TenantTable = TenantTable {
    name: "pending_import",
    kind: Kind::System,
    key: "user_id",
    columns: "user_id uuid NOT NULL, id uuid NOT NULL, campaign_id uuid NOT NULL, name text NOT NULL, bytes bytea NOT NULL",
    references: &[reference("campaign_id", "campaign", "ON DELETE CASCADE")],
    indexes: &[
        "CREATE INDEX pending_import_age ON pending_import (tenant_id, created_at)",
        // Pictures and archives are compressed already, and others do not wait for long.
        "ALTER TABLE pending_import ALTER bytes SET STORAGE EXTERNAL",
    ],
};

const FINISH: &[&str] = &[
    "CREATE FUNCTION prune_pending_imports() RETURNS void LANGUAGE sql SECURITY DEFINER \
     SET search_path = pg_catalog, public, pg_temp AS $$
         DELETE FROM pending_import p USING tenant t
         WHERE p.tenant_id = t.tenant_id AND p.created_at < now() - interval '1 hour'
     $$",
    "REVOKE ALL ON FUNCTION prune_pending_imports() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION prune_pending_imports() TO tavernkeep_app",
];
