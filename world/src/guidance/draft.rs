//! Drafts: what a character card tells models or lets its NPC do, until a person accepts it. A stranger wrote the card.
//!
//! Of a card's tools the one with which an NPC remembers applies at once if the NPC is new, without words of its own. Whatever else a
//! card must not do by itself waits: a member that has to wait gets a line in [`WAITING`].

use entity::shapes::ToolRef;
use serde_json::{Map, Value, json};

use super::own_words::{has_own_words, is_alike, without_own_words};
use crate::{actors::TOOLS_MAX, tools::NPC_MEMORY};

/// The members of a row, and those of a merge patch.
pub type Members = Map<String, Value>;

/// The member with the draft.
pub const PENDING: &str = "pending_instructions";
/// The members that wait whole.
const WAITING: [&str; 5] =
    ["instructions", "post_history_instructions", "authors_note", "reaction_threshold", "immediate_threshold"];
/// The member whose entries wait one by one.
const TOOLS: &str = "available_tools";
/// The tool that a new NPC has at once, because without it it would remember nobody.
const AT_ONCE: &str = NPC_MEMORY;

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
    // A list that cannot be read, or is too long, stays: it is refused where it is.
    let listed = members.get(TOOLS).filter(|listed| listed.as_array().is_some_and(|listed| listed.len() <= TOOLS_MAX));
    if let Some(Ok(listed)) = listed.cloned().map(serde_json::from_value) {
        let stored: Option<Vec<ToolRef>> = own(TOOLS).and_then(|own| serde_json::from_value(own.clone()).ok());
        let (has, waiting) = split(listed, stored);
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
fn split(listed: Vec<ToolRef>, own: Option<Vec<ToolRef>>) -> (Vec<ToolRef>, Vec<ToolRef>) {
    let is_new = own.is_none();
    let (mut has, mut waiting) = (own.unwrap_or_default(), Vec::<ToolRef>::new());
    for entry in listed {
        if is_new && entry.name() == AT_ONCE && has.is_empty() {
            has.push(without_own_words(&entry));
        }
        let is_had = has.iter().any(|own| is_alike(own, &entry));
        if !is_had && waiting.iter().all(|waits| waits.name() != entry.name()) {
            waiting.push(entry);
        }
    }
    (has, waiting)
}

/// Whether a member of a card waits, or a part of it, for an NPC that is new.
#[must_use]
pub fn waits(member: &str, value: &Value) -> bool {
    match value {
        Value::Array(listed) if member == TOOLS => {
            let plain = |entry: &Value| {
                let entry = serde_json::from_value::<ToolRef>(entry.clone());
                entry.is_ok_and(|entry| entry.name() == AT_ONCE && !has_own_words(&entry))
            };
            listed.len() > TOOLS_MAX || !listed.iter().all(plain)
        }
        _ => WAITING.contains(&member) && !is_nothing(value),
    }
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
    patch.insert(PENDING.to_owned(), Value::Null);
    Some(patch)
}

/// The changes that discard a row's draft, as a merge patch. None without a draft. What the NPC keeps of its card for exports loses the
/// texts of the draft, too: there they are whole if the draft had to cut them.
#[must_use]
pub fn discarded(row: &Members) -> Option<Members> {
    let pending = row.get(PENDING)?.as_object()?;
    let mut patch = json!({ PENDING: null });
    for (member, kept) in KEPT {
        let kept = format!("/extensions/character_card/data/{kept}");
        if pending.contains_key(member) && pointed(row, &kept).is_some() {
            put_null(&mut patch, &kept);
        }
    }
    match patch {
        Value::Object(patch) => Some(patch),
        _ => None,
    }
}

/// The texts of a draft, and where the kept data of a card has them.
const KEPT: [(&str, &str); 3] = [
    ("instructions", "system_prompt"),
    ("post_history_instructions", "post_history_instructions"),
    ("authors_note", "extensions/depth_prompt"),
];

/// The value at a path of names.
fn pointed<'r>(row: &'r Members, path: &str) -> Option<&'r Value> {
    let (first, rest) = path.strip_prefix('/')?.split_once('/')?;
    row.get(first)?.pointer(&format!("/{rest}"))
}

/// Sets null at a path of names, in a merge patch.
fn put_null(patch: &mut Value, path: &str) {
    let mut at = patch;
    let mut names = path.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        let Value::Object(members) = at else { return };
        let fresh = if names.peek().is_some() { json!({}) } else { Value::Null };
        at = members.entry(name.to_owned()).or_insert(fresh);
    }
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
        // What somebody took away, a card does not give back.
        let none = json!({ "available_tools": [] });
        let waits_again = kept_apart(json!({ "available_tools": ["NPC_memorize"] }), Some(none));
        assert_eq!(
            waits_again,
            json!({ "available_tools": [], "pending_instructions": { "available_tools": ["NPC_memorize"] } })
        );
        for (member, value, is_waiting) in [
            (TOOLS, json!(["NPC_memorize", plain]), false),
            (TOOLS, json!([own]), true),
            (TOOLS, json!(["NPC_memorize", "roll_dice"]), true),
            (TOOLS, json!([1]), true),
            ("reaction_threshold", json!(1), true),
            ("reaction_threshold", json!(0), false),
            ("immediate_threshold", Value::Null, false),
            ("location", json!("Port"), false),
        ] {
            assert_eq!(waits(member, &value), is_waiting, "{member} {value}");
        }
    }

    #[test]
    fn a_long_list_is_not_looked_at() {
        let long = json!({ "available_tools": vec!["roll_dice"; TOOLS_MAX + 1] });
        assert_eq!(kept_apart(long.clone(), None)["available_tools"], long["available_tools"]);
    }

    #[test]
    fn what_is_discarded_is_gone_from_the_kept_card() {
        let row = |pending: Value| {
            object(json!({ "pending_instructions": pending, "extensions": { "own": 1, "character_card": { "data": {
                "system_prompt": "x", "post_history_instructions": "y", "extensions": { "depth_prompt": { "prompt": "z" } } } } } }))
        };
        assert_eq!(discarded(&row(Value::Null)), None);
        let patch = discarded(&row(json!({ "instructions": "x", "authors_note": { "text": "z" } }))).unwrap();
        let kept = json!({ "system_prompt": null, "extensions": { "depth_prompt": null } });
        let wanted = json!({ "pending_instructions": null, "extensions": { "character_card": { "data": kept } } });
        assert_eq!(Value::Object(patch), wanted);
        let nothing = discarded(&object(json!({ "pending_instructions": { "instructions": "x" }, "extensions": {} })));
        assert_eq!(nothing.map(Value::Object), Some(json!({ "pending_instructions": null })));
    }
}
