//! Accounts are whose address they are: folded once, invited by links that are good once, and reset by such links.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in GLOBAL {
            db.execute_unprepared(statement).await?;
        }
        for statement in INVITATION.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/accounts.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// The letters that are folded are named, because `lower` depends on the database's locale.
const GLOBAL: &[&str] = &[
    "ALTER TABLE app_user ADD COLUMN email_folded text",
    "UPDATE app_user SET email_folded = \
     translate(email, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')",
    "ALTER TABLE app_user ALTER COLUMN email_folded SET NOT NULL",
    "CREATE UNIQUE INDEX app_user_folded_key ON app_user (email_folded)",
    "DROP INDEX app_user_email_key",
    "CREATE TABLE password_reset (user_id uuid PRIMARY KEY REFERENCES app_user (id) ON DELETE CASCADE, \
     hash bytea NOT NULL, tenant_id uuid, expires_at timestamptz NOT NULL)",
    "CREATE UNIQUE INDEX password_reset_hash_key ON password_reset (hash)",
    "ALTER TABLE password_reset ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE password_reset FORCE ROW LEVEL SECURITY",
    "CREATE POLICY owner ON password_reset TO CURRENT_USER USING (true) WITH CHECK (true)",
];

/// Who was asked to a tenant and has not come yet, or has. A link's secret is its holder's; the row knows its hash alone.
const INVITATION: TenantTable = TenantTable {
    name: "invitation",
    kind: Kind::ReadOnly,
    key: "id",
    columns: "id uuid NOT NULL, hash bytea NOT NULL, email text NOT NULL, email_folded text NOT NULL, name text NOT NULL, \
        role text NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')), invited_by uuid, \
        expires_at timestamptz NOT NULL, used_at timestamptz",
    references: &[],
    indexes: &[
        "ALTER TABLE invitation ADD CONSTRAINT invitation_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)",
        "CREATE UNIQUE INDEX invitation_open_key ON invitation (tenant_id, email_folded) WHERE used_at IS NULL",
        "CREATE UNIQUE INDEX invitation_hash_key ON invitation (hash)",
    ],
};
