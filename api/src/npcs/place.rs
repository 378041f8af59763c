//! Where NPCs are: the ways in which a place is written.

use uuid::Uuid;

use crate::{error::Result, http::resource::scope_key, tenancy::TenantTx};

/// The ways in which NPCs have this place written: `Old Crypt` and `old-crypt` are one. The key is made here, not in SQL, so
/// the places are read first: an index holds them all. One statement.
///
/// # Errors
/// Those of the database.
pub async fn written(tx: &TenantTx, campaign: Uuid, place: &str) -> Result<Vec<String>> {
    let all = sqlx::query_scalar::<_, String>(
        "SELECT DISTINCT location FROM npc WHERE tenant_id = $1 AND campaign_id = $2 AND location IS NOT NULL",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(all.into_iter().filter(|location| is_same(location, place)).collect())
}

/// Whether two names mean one place.
#[must_use]
pub fn is_same(a: &str, b: &str) -> bool {
    scope_key(a) == scope_key(b)
}
