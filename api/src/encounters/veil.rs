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

/// Takes the numbers of enemies, those of whom only the game master knows, the game master's notes and the log's events from what
/// a player is shown.
pub fn veil(view: &mut Value, caller: &Caller) {
    if caller.is_player() {
        veil_for(view, caller.player);
    }
}

/// The same for whoever plays a character, such as a session's AI.
pub fn veil_for(view: &mut Value, player: Option<Uuid>) {
    let own = player.map(|player| player.to_string());
    conceal(view, own.as_deref());
    if let Some(members) = view.as_object_mut() {
        members.remove("notes");
        members.remove("events");
    }
    let Some(members) = view.as_object_mut() else { return };
    let mut list = |name: &str| members.get_mut(name).and_then(Value::as_array_mut).map(std::mem::take);
    let (mut outcomes, mut participants) = (list("outcomes"), list("participants"));
    outcomes.iter_mut().flatten().for_each(outcome);
    for participant in participants.iter_mut().flatten() {
        if let Some(members) = participant.as_object_mut().filter(|p| p["is_enemy"] == Value::Bool(true)) {
            members.retain(|name, _| OF_ENEMIES.contains(&name.as_str()));
        }
    }
    for (name, list) in [("outcomes", outcomes), ("participants", participants)] {
        if let Some(list) = list {
            members.insert(name.to_owned(), Value::Array(list));
        }
    }
}

/// Takes what tells an enemy's numbers from an outcome. Why something cannot be done is told.
pub fn outcome(shown: &mut Value) {
    let is_impossible = shown["impossible"] == Value::Bool(true);
    let Some(members) = shown.as_object_mut() else { return };
    members.retain(|name, _| !OF_OUTCOMES.contains(&name.as_str()) || (is_impossible && name == "notes"));
    if let Some(damage) = members.get_mut("damage").and_then(Value::as_object_mut) {
        damage.remove("taken");
    }
    for beam in members.get_mut("attacks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(damage) = beam.get_mut("damage").and_then(Value::as_object_mut) {
            damage.remove("taken");
        }
    }
}

/// Takes those from a view of whom only the game master knows, but for the player's own character.
fn conceal(view: &mut Value, own: Option<&str>) {
    let Some(Value::Array(hidden)) = view.as_object_mut().and_then(|members| members.remove("hidden")) else { return };
    let is_own = |id: &Value, all: &[Value]| {
        all.iter().any(|p| &p["id"] == id && own.is_some() && p["character_id"].as_str() == own)
    };
    let everybody = view["participants"].as_array().cloned().unwrap_or_default();
    let hidden: Vec<Value> = hidden.into_iter().filter(|id| !is_own(id, &everybody)).collect();
    let is_hidden = |id: &Value| hidden.contains(id);
    for (list, names) in [("participants", &["id"][..]), ("provoked", &["by", "target"])] {
        if let Some(list) = view.get_mut(list).and_then(Value::as_array_mut) {
            list.retain(|entry| !names.iter().any(|name| is_hidden(&entry[*name])));
        }
    }
    let Some(members) = view.as_object_mut() else { return };
    if members.get("current_participant_id").is_some_and(is_hidden) {
        members.insert("current_participant_id".to_owned(), Value::Null);
    }
    // Its place in the order would count them, and what was odd at the beginning may name them.
    members.remove("turn");
    if let Some(Value::Array(warnings)) = members.get_mut("warnings") {
        warnings.clear();
    }
    if let Some(count) = members.get_mut("participant_count") {
        let seen = count.as_u64().unwrap_or_default().saturating_sub(hidden.len() as u64);
        *count = seen.into();
    }
}

/// An encounter as it stands, as the caller sees it.
///
/// # Errors
/// `not_found`.
pub async fn seen_by(tx: &TenantTx, campaign: Uuid, id: Uuid, caller: &Caller) -> Result<Value> {
    let place = Place { campaign: &Ref::Id(campaign), only: caller.campaign };
    let (mut view, _) =
        service::get(&Cx { tx, place, turn: None, rows_max: 0 }, &id.to_string(), Verbosity::Standard).await?;
    veil(&mut view, caller);
    Ok(view)
}
