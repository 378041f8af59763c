//! Deletes a row of any kind.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use base::{error::Result, stored::Columns};
use db::tenancy::TenantTx;

/// Deletes a row of a table, and asks the turns that play it to stop. Returns those turns.
pub(super) async fn delete_row(tx: &TenantTx, table: &str, id: Uuid) -> Result<Vec<Uuid>> {
    let sql = format!("DELETE FROM {table} WHERE tenant_id = $1 AND id = $2");
    sqlx::query(AssertSqlSafe(sql)).bind(tx.tenant()).bind(id).execute(&mut *tx.connection().await).await?;
    // A deleted actor's turns stop. A plan for it is not cancelled: it notices by itself and reports that.
    let turns = "UPDATE turn SET cancel_requested = true \
        WHERE tenant_id = $1 AND entity_id = $2 AND kind <> 'planner' AND (status = 'running' OR status = 'queued') RETURNING id";
    let rows = sqlx::query(turns).bind(tx.tenant()).bind(id).fetch_all(&mut *tx.connection().await).await?;
    rows.iter().map(|row| row.read("id")).collect()
}
