//! Users of the editor: who they are, where they belong, their sessions, and a journal that knows them.

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
        for statement in MEMBERSHIP.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/users.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Users are global, and so are their sessions: nobody's tenant is known yet when they are looked up. The server's role
/// has no right on either table; it calls the functions.
const GLOBAL: &[&str] = &[
    "CREATE TABLE app_user (id uuid PRIMARY KEY, email text NOT NULL, name text NOT NULL, password_hash text NOT NULL, \
     created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(), \
     last_sign_in_at timestamptz)",
    "CREATE UNIQUE INDEX app_user_email_key ON app_user (lower(email))",
    "ALTER TABLE app_user ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE app_user FORCE ROW LEVEL SECURITY",
    "CREATE POLICY owner ON app_user TO CURRENT_USER USING (true) WITH CHECK (true)",
    "CREATE TABLE editor_session (hash bytea PRIMARY KEY, user_id uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE, \
     tenant_id uuid, created_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now(), \
     expires_at timestamptz NOT NULL)",
    "CREATE INDEX editor_session_user ON editor_session (user_id, created_at)",
    "CREATE INDEX editor_session_expires ON editor_session (expires_at)",
    "ALTER TABLE editor_session ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE editor_session FORCE ROW LEVEL SECURITY",
    "CREATE POLICY owner ON editor_session TO CURRENT_USER USING (true) WITH CHECK (true)",
];

/// Where a user belongs, and as what.
const MEMBERSHIP: TenantTable = TenantTable {
    name: "membership",
    kind: Kind::ReadOnly,
    key: "user_id",
    columns: "user_id uuid NOT NULL, role text NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')), \
        version bigint NOT NULL DEFAULT 1, updated_at timestamptz NOT NULL DEFAULT now()",
    references: &[],
    indexes: &[
        "ALTER TABLE membership ADD CONSTRAINT membership_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (tenant_id)",
        "ALTER TABLE membership ADD CONSTRAINT membership_user_fkey FOREIGN KEY (user_id) REFERENCES app_user (id) \
         ON DELETE CASCADE",
        "CREATE INDEX membership_user ON membership (user_id)",
        "CREATE TRIGGER a_touch BEFORE UPDATE ON membership FOR EACH ROW EXECUTE FUNCTION touch_row()",
    ],
};
