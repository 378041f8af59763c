//! What a player sees of a fight: how enemies fare, not their numbers.

use rules::encounter::Verbosity;
use serde_json::Value;
use uuid::Uuid;

use super::{
    service::{self, Cx},
    store::Place,
};
use crate::{auth::Caller, error::Result, http::resource::Ref, tenancy::TenantTx};

/// What a player sees of an enemy.
const OF_ENEMIES: &[&str] =
    &["id", "character_id", "npc_id", "name", "is_enemy", "status", "initiative", "conditions", "position"];

/// What of an outcome tells an enemy's numbers.
const OF_OUTCOMES: &[&str] = &["dc_or_ac", "effects", "notes", "raw"];

/// Takes the numbers of enemies, the game master's notes and the log's events from what a player is shown.
pub fn veil(view: &mut Value, caller: &Caller) {
    if !caller.is_player() {
        return;
    }
    if let Some(members) = view.as_object_mut() {
        members.remove("notes");
        members.remove("events");
    }
    for outcome in view["outcomes"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        outcome.retain(|name, _| !OF_OUTCOMES.contains(&name.as_str()));
        if let Some(damage) = outcome.get_mut("damage").and_then(Value::as_object_mut) {
            damage.remove("taken");
        }
    }
    for participant in view["participants"].as_array_mut().into_iter().flatten() {
        if let Some(members) = participant.as_object_mut().filter(|p| p["is_enemy"] == Value::Bool(true)) {
            members.retain(|name, _| OF_ENEMIES.contains(&name.as_str()));
        }
    }
}

/// An encounter as it stands, as the caller sees it.
///
/// # Errors
/// `not_found`.
pub async fn seen_by(tx: &TenantTx, campaign: Uuid, id: Uuid, caller: &Caller) -> Result<Value> {
    let place = Place { campaign: &Ref::Id(campaign), only: caller.campaign };
    let (mut view, _) = service::get(&Cx { tx, place, turn: None }, &id.to_string(), Verbosity::Standard).await?;
    veil(&mut view, caller);
    Ok(view)
}
