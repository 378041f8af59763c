//! What a player may see of a fight: how enemies fare, but not their numbers.

use serde_json::Value;
use uuid::Uuid;

use edge::caller::Caller;

/// The members of an enemy that a player may see.
const OF_ENEMIES: &[&str] =
    &["id", "character_id", "npc_id", "name", "is_enemy", "status", "initiative", "conditions", "position"];

/// The members of an outcome that reveal an enemy's numbers.
const OF_OUTCOMES: &[&str] = &["dc_or_ac", "effects", "notes", "raw"];

/// Removes from a view what a player must not see: enemies' numbers, hidden participants, the game master's notes and the log's
/// events.
pub fn veil(view: &mut Value, caller: &Caller) {
    if caller.is_player() {
        veil_for(view, caller.player);
    }
}

/// [`veil`] for anyone who plays a character, such as a session's AI.
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

/// Removes an enemy's numbers from an outcome. Keeps the notes that say why something is impossible.
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

/// Removes hidden participants from a view, except the player's own character.
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
    // The current turn's place in the order would reveal how many there are, and the warnings may name them.
    members.remove("turn");
    if let Some(Value::Array(warnings)) = members.get_mut("warnings") {
        warnings.clear();
    }
    if let Some(count) = members.get_mut("participant_count") {
        let seen = count.as_u64().unwrap_or_default().saturating_sub(hidden.len() as u64);
        *count = seen.into();
    }
}
