//! Model profiles: the endpoints, models and parameters among which a tenant's campaigns choose.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in PROFILES.statements() {
            db.execute_unprepared(&statement).await?;
        }
        // A test of a profile belongs to no campaign.
        db.execute_unprepared("ALTER TABLE usage_entry ALTER COLUMN campaign_id DROP NOT NULL").await?;
        Ok(())
    }
}

/// `api_key` and `headers` are encrypted, because both can hold a provider's secrets.
const PROFILES: TenantTable = TenantTable {
    name: "model_profile",
    kind: Kind::System,
    key: "id",
    columns: "id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, settings jsonb NOT NULL, api_key bytea, headers bytea, \
        version bigint NOT NULL DEFAULT 1, updated_at timestamptz NOT NULL DEFAULT now()",
    references: &[],
    indexes: &[
        "ALTER TABLE model_profile ADD CONSTRAINT model_profile_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)",
        "CREATE UNIQUE INDEX model_profile_slug_key ON model_profile (tenant_id, slug)",
        "CREATE TRIGGER a_touch BEFORE UPDATE ON model_profile FOR EACH ROW EXECUTE FUNCTION touch_row()",
    ],
};
