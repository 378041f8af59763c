//! Reverts what a turn did in encounters: removes its actions from the log and folds the state anew.
//!
//! The journal shows how a fight stands but does not contain its state. So this module reverts the rows of encounters, and
//! the journal's own revert handles all other rows.

use rules::encounter::{Encounter, Event};
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::store;
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// Reverts a turn's actions and commits. Returns the encounters in which somebody acted since; they stay as they are.
///
/// # Errors
/// Database errors.
pub async fn rewind(tx: &TenantTx, turn: Uuid) -> Result<Vec<Value>> {
    sqlx::query(
        "WITH e AS (UPDATE encounter SET hidden = hidden WHERE tenant_id = $1 AND id IN (\
             SELECT encounter_id FROM encounter_member WHERE tenant_id = $1 AND turn_id = $2) RETURNING id) \
         UPDATE encounter_member m SET committed_at = NULL, since_at = now(), turn_id = NULL FROM e \
         WHERE m.tenant_id = $1 AND m.turn_id = $2 AND m.encounter_id = e.id",
    )
    .bind(tx.tenant())
    .bind(turn)
    .execute(&mut *tx.connection().await)
    .await?;
    let rows = sqlx::query(
        "SELECT encounter_id, min(seq) AS first FROM encounter_log WHERE tenant_id = $1 AND turn_id = $2 \
         GROUP BY encounter_id ORDER BY encounter_id",
    )
    .bind(tx.tenant())
    .bind(turn)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut conflicts = Vec::new();
    for row in &rows {
        let (id, first): (Uuid, i64) = (row.read("encounter_id")?, row.read("first")?);
        if !rewind_one(tx, turn, id, first).await? {
            conflicts.push(json!({ "table": "encounter", "id": id, "column": null, "reason": "changed_since" }));
        }
    }
    Ok(conflicts)
}

/// Keeps what a turn did in encounters, and returns those encounters.
///
/// # Errors
/// Database errors.
pub async fn leave(tx: &TenantTx, turn: Uuid) -> Result<Vec<Value>> {
    let rows = sqlx::query("SELECT DISTINCT encounter_id FROM encounter_log WHERE tenant_id = $1 AND turn_id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let left = |row: &PgRow| {
        let id: Uuid = row.read("encounter_id")?;
        Ok(json!({ "table": "encounter", "id": id, "column": null, "reason": "failed" }))
    };
    rows.iter().map(left).collect()
}

/// Reverts a turn's actions in one encounter. False if somebody acted there since.
async fn rewind_one(tx: &TenantTx, turn: Uuid, id: Uuid, first: i64) -> Result<bool> {
    let beginning = sqlx::query(
        "SELECT s.beginning::text AS beginning FROM encounter e \
         JOIN encounter_state s ON s.tenant_id = e.tenant_id AND s.encounter_id = e.id \
         WHERE e.tenant_id = $1 AND e.id = $2 FOR NO KEY UPDATE OF e, s",
    )
    .bind(tx.tenant())
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    // The encounter was deleted since, so nothing of the turn is left.
    let Some(beginning) = beginning else { return Ok(true) };
    let log = sqlx::query(
        "SELECT seq, events::text AS events, turn_id IS NOT DISTINCT FROM $3 AS own FROM encounter_log \
         WHERE tenant_id = $1 AND encounter_id = $2 ORDER BY seq",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(turn)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    for row in &log {
        if row.read::<i64>("seq")? > first && !row.read::<bool>("own")? {
            return Ok(false);
        }
    }
    let mut then: Encounter = serde_json::from_str(beginning.read("beginning")?).map_err(Error::internal)?;
    for row in &log {
        if row.read::<i64>("seq")? >= first {
            continue;
        }
        let events: Vec<Event> = serde_json::from_str(row.read("events")?).map_err(Error::internal)?;
        then.apply_all(&events);
    }
    store::put_back(tx, id, first, &then).await?;
    Ok(true)
}
