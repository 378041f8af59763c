//! Moves characters.

use uuid::Uuid;

use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// Moves a character. Returns its new version.
///
/// # Errors
/// `not_found` if it no longer exists.
pub async fn move_to(tx: &TenantTx, character: Uuid, location: &str) -> Result<i64> {
    let row = sqlx::query("UPDATE character SET location = $3 WHERE tenant_id = $1 AND id = $2 RETURNING version")
        .bind(tx.tenant())
        .bind(character)
        .bind(location)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.ok_or_else(|| Error::not_found("character"))?.read("version")
}
