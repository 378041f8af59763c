//! A second factor of accounts: the secret of a code generator, sealed by the server, and codes for the day it is lost.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in GLOBAL {
            db.execute_unprepared(statement).await?;
        }
        for statement in include_str!("sql/second_factor.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Who knows the password and has not shown the second factor has no session, but a row of a table of its own: no function of
/// sessions can take it for one.
const GLOBAL: &[&str] = &[
    "ALTER TABLE app_user ADD COLUMN totp_secret bytea, ADD COLUMN totp_pending bytea, \
     ADD COLUMN totp_step bigint NOT NULL DEFAULT 0",
    "CREATE TABLE recovery_code (user_id uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE, hash bytea NOT NULL, \
     PRIMARY KEY (user_id, hash))",
    "ALTER TABLE recovery_code ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE recovery_code FORCE ROW LEVEL SECURITY",
    "CREATE POLICY owner ON recovery_code TO CURRENT_USER USING (true) WITH CHECK (true)",
    "CREATE TABLE half_sign_in (hash bytea PRIMARY KEY, user_id uuid NOT NULL REFERENCES app_user (id) ON DELETE CASCADE, \
     password_hash text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL)",
    "CREATE INDEX half_sign_in_user ON half_sign_in (user_id, created_at)",
    "ALTER TABLE half_sign_in ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE half_sign_in FORCE ROW LEVEL SECURITY",
    "CREATE POLICY owner ON half_sign_in TO CURRENT_USER USING (true) WITH CHECK (true)",
];
