//! Version heads show whether something that was written from the database is up to date.

use std::collections::BTreeMap;

use uuid::Uuid;

use base::{error::Result, stored::Columns};
use db::tenancy::TenantTx;

/// Version heads by their keys.
pub(super) type Heads = BTreeMap<String, i64>;

/// The present versions of heads. A head that never changed is 0.
pub(super) async fn versions(tx: &TenantTx, campaign: Uuid, keys: &[String]) -> Result<Heads> {
    let rows = sqlx::query(
        // Looks up each head by itself. Over all at once, the planner would read every head of the campaign. The list comes from a
        // subquery, because with a known length each call would be planned anew.
        "SELECT k AS key, coalesce((SELECT h.version FROM version_head h \
           WHERE h.tenant_id = $1 AND h.campaign_id = $2 AND h.key = k), 0) AS version FROM unnest((SELECT $3::text[])) AS k",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(keys)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("key")?, row.read("version")?))).collect()
}
