//! A file whose report somebody is reading. It waits in the database, so that any replica can go on with it; one for each user,
//! for an hour.

use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    stored::Columns,
    tenancy::TenantTx,
};

/// Keeps a file; it takes the place of the user's last one.
///
/// # Errors
/// Those of the database.
pub async fn keep(tx: &TenantTx, user: Uuid, campaign: Uuid, name: &str, bytes: &[u8]) -> Result<Uuid> {
    let id = Uuid::now_v7();
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

/// Reads a file that waits.
///
/// # Errors
/// `gone` if it waited too long, or another took its place.
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

/// Takes a file out; if the transaction does not commit it is still there.
///
/// # Errors
/// `gone` if it was taken already, or another took its place.
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
    Error::new(Code::Gone, "This file waited for too long, or you chose another since. Choose it again.")
}
