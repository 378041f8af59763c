//! A file whose dry-run report a user is reading. It is stored in the database for an hour, so that any replica can
//! continue with it. Each user has at most one.

use uuid::Uuid;

use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// Stores a file. It replaces the user's previous one.
///
/// # Errors
/// Those of the database.
pub async fn keep(tx: &TenantTx, user: Uuid, campaign: Uuid, name: &str, bytes: &[u8]) -> Result<Uuid> {
    let id = clock::id();
    sqlx::query(
        "INSERT INTO pending_import (tenant_id, user_id, id, campaign_id, name, bytes) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (tenant_id, user_id) DO UPDATE SET id = excluded.id, campaign_id = excluded.campaign_id, \
             name = excluded.name, bytes = excluded.bytes, created_at = now()",
    )
    .bind(tx.tenant())
    .bind(user)
    .bind(id)
    .bind(campaign)
    .bind(name)
    .bind(bytes)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(id)
}

/// Reads a stored file.
///
/// # Errors
/// `gone` if it is too old or was replaced.
pub async fn read(tx: &TenantTx, user: Uuid, campaign: Uuid, id: Uuid) -> Result<(String, Vec<u8>)> {
    let row = sqlx::query(
        "SELECT name, bytes FROM pending_import WHERE tenant_id = $1 AND user_id = $2 AND campaign_id = $3 AND id = $4 \
             AND created_at > now() - interval '1 hour'",
    )
    .bind(tx.tenant())
    .bind(user)
    .bind(campaign)
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(gone)?;
    Ok((row.read("name")?, row.read("bytes")?))
}

/// Removes a stored file. If the transaction is not committed, the file stays.
///
/// # Errors
/// `gone` if it was removed already or was replaced.
pub async fn take(tx: &TenantTx, user: Uuid, id: Uuid) -> Result<()> {
    let taken = sqlx::query("DELETE FROM pending_import WHERE tenant_id = $1 AND user_id = $2 AND id = $3")
        .bind(tx.tenant())
        .bind(user)
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
    if taken.rows_affected() == 0 { Err(gone()) } else { Ok(()) }
}

fn gone() -> Error {
    Error::new(Code::Gone, "This file was kept for too long, or you have chosen another one since. Choose it again.")
}
