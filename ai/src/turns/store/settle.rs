//! Settles the wait of a turn that was set aside for another attempt at its answer.

use serde_json::Value;
use uuid::Uuid;

use base::{error::Result, stored::Columns};
use db::{
    pool::Pool,
    tenancy::{Actor, Origin, TenantTx},
};

/// Settles the wait of a turn that was set aside: applies it again if the attempt did not answer.
///
/// # Errors
/// Database errors.
pub async fn settle(pool: &Pool, actor: &Actor, turn: Uuid) -> Result<()> {
    let tx = TenantTx::write(pool, &actor.clone().in_turn(turn, Origin::Turn)).await?;
    let row = sqlx::query("SELECT turn_settle($1) AS lost").bind(turn).fetch_one(&mut *tx.connection().await).await?;
    let lost: Option<Value> = row.read("lost")?;
    tx.commit().await?;
    let rows = lost.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
    if rows > 0 {
        tracing::warn!(turn_id = %turn, rows, "some effects of an answer could not be applied again");
    }
    Ok(())
}
