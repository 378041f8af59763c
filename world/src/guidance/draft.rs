//! Drafts: what a character card tells models or lets its NPC do, until a person accepts it. A stranger wrote the card.
//!
//! Of a card's tools those with which an NPC remembers apply at once, without words of their own. Whatever else a card must not do
//! by itself waits: a member that has to wait gets a line in [`WAITING`].

use entity::shapes::ToolRef;
use serde_json::{Map, Value, json};

use super::own_words::{is_alike, without_own_words};
use crate::tools;

/// The members of a row, and those of a merge patch.
pub type Members = Map<String, Value>;

/// The member with the draft.
pub const PENDING: &str = "pending_instructions";
/// The members that wait whole.
const WAITING: [&str; 5] =
    ["instructions", "post_history_instructions", "authors_note", "reaction_threshold", "immediate_threshold"];
/// The member whose entries wait one by one.
const TOOLS: &str = "available_tools";

/// Moves what has to wait into the draft of a row that a card brings. What the stored row already has does not wait, and the card
/// takes nothing away from it.
pub fn keep_apart(members: &mut Members, stored: Option<&Members>) {
    let own = |name: &str| stored.and_then(|stored| stored.get(name));
    let mut pending = match members.remove(PENDING) {
        Some(Value::Object(pending)) => pending,
        _ => Map::new(),
    };
    pending.extend(WAITING.iter().filter_map(|name| Some(((*name).to_owned(), members.remove(*name)?))));
    let has_waiting = !pending.is_empty() || members.contains_key(TOOLS);
    pending.retain(|name, value| !is_nothing(value) && own(name) != Some(value));
    if let Some(Ok(listed)) = members.get(TOOLS).cloned().map(serde_json::from_value) {
        let stored: Option<Vec<ToolRef>> = own(TOOLS).and_then(|own| serde_json::from_value(own.clone()).ok());
        let (has, waiting) = split(listed, stored.as_deref().unwrap_or_default());
        members.insert(TOOLS.to_owned(), json!(has));
        if !waiting.is_empty() {
            pending.insert(TOOLS.to_owned(), json!(waiting));
        }
    }
    if has_waiting {
        members.insert(PENDING.to_owned(), if pending.is_empty() { Value::Null } else { pending.into() });
    }
}

/// Whether a value tells models nothing and lets nobody do anything.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == "" || *value == 0
}

/// The tools that a row has with a card's tools, and the entries that wait.
fn split(listed: Vec<ToolRef>, own: &[ToolRef]) -> (Vec<ToolRef>, Vec<ToolRef>) {
    let (mut has, mut waiting) = (own.to_vec(), Vec::<ToolRef>::new());
    for entry in listed {
        if !has.iter().any(|own| own.name() == entry.name()) && tools::REMEMBERING.contains(&entry.name()) {
            has.push(without_own_words(&entry));
        }
        let is_had = has.iter().any(|own| is_alike(own, &entry));
        if !is_had && waiting.iter().all(|waits| waits.name() != entry.name()) {
            waiting.push(entry);
        }
    }
    (has, waiting)
}

/// Whether a card's entry applies at once, for an NPC that is new.
#[must_use]
pub fn applies_at_once(entry: &Value) -> bool {
    let entry = serde_json::from_value::<ToolRef>(entry.clone());
    entry.is_ok_and(|entry| split(vec![entry], &[]).1.is_empty())
}

/// The changes that accept a row's draft, as a merge patch. None without a draft.
#[must_use]
pub fn accepted(row: &Members) -> Option<Members> {
    let mut patch = row.get(PENDING)?.as_object()?.clone();
    if let Some(Value::Array(waiting)) = patch.remove(TOOLS) {
        let mut tools = row.get(TOOLS).and_then(Value::as_array).cloned().unwrap_or_default();
        for entry in waiting {
            match tools.iter_mut().find(|tool| name_of(tool) == name_of(&entry)) {
                Some(tool) => *tool = entry,
                None => tools.push(entry),
            }
        }
        patch.insert(TOOLS.to_owned(), tools.into());
    }
    patch.extend(discarded());
    Some(patch)
}

/// The changes that discard a row's draft, as a merge patch.
#[must_use]
pub fn discarded() -> Members {
    Map::from_iter([(PENDING.to_owned(), Value::Null)])
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("name")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Members {
        value.as_object().cloned().unwrap()
    }

    fn kept_apart(members: Value, stored: Option<Value>) -> Value {
        let mut members = object(members);
        keep_apart(&mut members, stored.map(object).as_ref());
        Value::Object(members)
    }

    #[test]
    fn what_a_row_has_does_not_wait() {
        let card =
            json!({ "name": "Ann", "reaction_threshold": 5, "pending_instructions": { "instructions": "Be brief." } });
        let waits =
            json!({ "name": "Ann", "pending_instructions": { "instructions": "Be brief.", "reaction_threshold": 5 } });
        assert_eq!(kept_apart(card.clone(), None), waits);
        assert_eq!(kept_apart(card.clone(), Some(json!({ "instructions": "", "reaction_threshold": null }))), waits);
        let has = json!({ "instructions": "Be brief.", "reaction_threshold": 5 });
        assert_eq!(kept_apart(card, Some(has.clone())), json!({ "name": "Ann", "pending_instructions": null }));
        // A card that says nothing of the kind leaves everything as it is.
        assert_eq!(kept_apart(json!({ "name": "Ann" }), Some(has)), json!({ "name": "Ann" }));
        assert_eq!(kept_apart(json!({ "reaction_threshold": 0 }), None), json!({ "pending_instructions": null }));
    }

    #[test]
    fn tools_wait_unless_they_only_remember() {
        let own = json!({ "name": "NPC_memorize", "description": "Obey.", "parameters": { "memory_string": { "maxLength": 80 } } });
        let plain = json!({ "name": "NPC_memorize", "parameters": { "memory_string": { "maxLength": 80 } } });
        let card = json!({ "available_tools": ["apply_damage", own, "apply_damage"] });
        let first =
            json!({ "available_tools": [plain], "pending_instructions": { "available_tools": ["apply_damage", own] } });
        assert_eq!(kept_apart(card.clone(), None), first);
        // A second import of the same card changes nothing, before the draft is accepted and after.
        assert_eq!(kept_apart(card.clone(), Some(first.clone())), first);
        let mut row = object(first);
        row.extend(accepted(&row).unwrap());
        assert_eq!(row["available_tools"], json!([own, "apply_damage"]));
        let again = kept_apart(card.clone(), Some(Value::Object(row.clone())));
        assert_eq!(again, json!({ "available_tools": [own, "apply_damage"], "pending_instructions": null }));
        // What somebody narrowed, a card does not widen.
        row.insert("available_tools".to_owned(), json!([{ "name": "NPC_memorize", "exclusive": true }, "roll_dice"]));
        let widened = kept_apart(json!({ "available_tools": ["NPC_memorize"] }), Some(Value::Object(row.clone())));
        assert_eq!(widened["available_tools"], row["available_tools"]);
        assert_eq!(widened["pending_instructions"], json!({ "available_tools": ["NPC_memorize"] }));
        assert!(applies_at_once(&json!("NPC_memorize")) && applies_at_once(&plain));
        assert!(!applies_at_once(&own) && !applies_at_once(&json!("roll_dice")) && !applies_at_once(&json!(1)));
    }
}
