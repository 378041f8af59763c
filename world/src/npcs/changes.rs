//! How owners change NPCs: a new disposition, a new stat block, or new NPCs at a location. This module does not check
//! whether they may.

use entity::{
    npc,
    shapes::{NpcBehavior, Stats},
};
use serde_json::{Map, Value, json};
use sqlx::types::Json;
use uuid::Uuid;

use super::{MEMORY_TOOL, NpcInput, Npcs};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::{
    read,
    resource::{self, plain_columns},
};

/// How many behaviors an NPC keeps, the newest ones.
pub const BEHAVIORS_MAX: usize = 20;

/// Makes an NPC, whose row is locked, behave in a way: towards everybody, or towards one player. One statement.
///
/// # Errors
/// Database errors.
pub async fn add_behavior(tx: &TenantTx, npc: &npc::Model, behavior: &NpcBehavior) -> Result<()> {
    let kept = npc.behaviors.0.len().saturating_sub(BEHAVIORS_MAX - 1);
    let behaviors: Vec<_> = npc.behaviors.0.iter().skip(kept).chain([behavior]).collect();
    sqlx::query("UPDATE npc SET behaviors = $3 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(npc.id.0)
        .bind(Json(behaviors))
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// Writes an NPC's stat block and disposition. One statement.
///
/// # Errors
/// Database errors.
pub async fn set_stats(tx: &TenantTx, npc: Uuid, stats: &Stats, disposition: &str) -> Result<()> {
    sqlx::query("UPDATE npc SET stats = $3, disposition = $4 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(npc)
        .bind(Json(stats))
        .bind(disposition)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// A row from which to make new NPCs: a copy of an existing one, unhurt. It neither reacts by itself nor behaves as that one was told to.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn like(npc: &npc::Model) -> Result<Map<String, Value>> {
    let mut row = plain_columns(npc)?;
    let mut stats = npc.stats.0.clone();
    (stats.hp, stats.temp_hp) = (stats.max_hp, 0);
    row.insert("stats".to_owned(), serde_json::to_value(stats).map_err(Error::internal)?);
    for name in ["reaction_threshold", "immediate_threshold"] {
        row.insert(name.to_owned(), Value::Null);
    }
    row.insert("ai_lock".to_owned(), false.into());
    row.insert("behaviors".to_owned(), json!([]));
    row.insert("conditions".to_owned(), json!([]));
    row.insert("effects".to_owned(), json!([]));
    Ok(row)
}

/// A row from which to make new NPCs that have only a name and the tool to remember with.
///
/// # Errors
/// `validation_failed` for a name that does not fit.
pub fn named(name: &str) -> Result<Map<String, Value>> {
    let input: NpcInput = read::typed(json!({ "name": name, "available_tools": [MEMORY_TOOL] }))?;
    plain_columns(&input)
}

/// Makes `how_many` NPCs from a row, each with a slug of its own. Returns their ids and slugs. One statement.
///
/// # Errors
/// `slug_taken` if too few of the slugs for this name are free; database errors.
pub async fn spawn(
    tx: &TenantTx,
    campaign: Uuid,
    row: Map<String, Value>,
    label: &str,
    how_many: u8,
) -> Result<Vec<(Uuid, String)>> {
    let rows = sqlx::query("SELECT npc_id, npc_slug FROM spawn_npcs($1, $2, $3, $4, $5)")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(Value::Object(row))
        .bind(resource::slugs_for::<Npcs>(label))
        .bind(i32::from(how_many))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    if rows.is_empty() {
        return Err(Error::new(
            Code::SlugTaken,
            "Too many characters, NPCs and owners have this name already. Choose another name.",
        ));
    }
    rows.iter().map(|row| Ok((row.read("npc_id")?, row.read("npc_slug")?))).collect()
}
