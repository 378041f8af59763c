//! Declares enums for members whose Rust type is a string but that have a fixed set of values.
//!
//! Rust enums need no line here. A line has `Schema.member` or `operation.parameter`, and the values or the schema with
//! the values.

use serde_json::{Value, json};

use super::document::{Object, operations, reference, schemas};

/// The values that a string may have.
enum Values {
    /// One of these.
    Of(&'static [&'static str]),
    /// The values of another schema, by its name.
    As(&'static str),
}
use Values::{As, Of};

const ORIGINS: Values = Of(&["server", "frontend", "manual", "seeded"]);
const SOURCES: Values = Of(&["personal", "private", "broadcast", "editor", "import"]);
const OPS: Values = Of(&["insert", "update", "delete"]);
const CAUSES: Values = Of(&["api", "turn", "import", "fork", "revert", "system"]);
const DURATIONS: Values = Of(&["rounds", "concentration", "until_dispelled", "until_rest", "save_ends"]);
const TOLD: Values = Of(&["overview", "delta"]);

const VALUES: &[(&str, Values)] = &[
    ("AttackRoll.outcome", Of(&["hit", "critical hit", "miss"])),
    ("ConditionDetail.duration", DURATIONS),
    ("DiceStatistics.method", Of(&["exact", "simulated"])),
    ("Encounter.source", ORIGINS),
    ("EncounterActionResult.source", ORIGINS),
    ("ResolvedOutcome.source", ORIGINS),
    ("SkillUsed.source", ORIGINS),
    ("EncounterAction.cost", As("TurnCost")),
    ("EncounterAction.duration", DURATIONS),
    ("EncounterAction.advantage", As("Advantage")),
    ("EncounterAction.cover", Of(&["none", "half", "three_quarters", "total"])),
    ("EncounterCreateInput.lighting", As("Lighting")),
    ("EncounterEndInput.outcome", As("EncounterOutcome")),
    ("EncounterParticipantInput.size", Of(&["tiny", "small", "medium", "large", "huge", "gargantuan"])),
    ("EncounterRecord.status", As("EncounterStatus")),
    ("EncounterListed.status", As("EncounterStatus")),
    ("ImportedRow.action", Of(&["created", "updated", "unchanged"])),
    ("HistoryMessage.type", Of(&["chat", "roll", "card", "system", "whisper"])),
    ("JournalChange.op", OPS),
    ("JournalChange.origin", CAUSES),
    ("Revision.op", OPS),
    ("Revision.origin", CAUSES),
    ("LoreDuplicate.same", Of(&["title", "content"])),
    ("LoreLink.kind", Of(&["lore", "character", "npc", "owner"])),
    ("MessageText.role", Of(&["system", "user", "assistant"])),
    ("PromptPreview.context", TOLD),
    ("Turn.context", TOLD),
    ("PromptView.cache", Of(&["hit", "miss"])),
    ("RolledDie.kind", Of(&["fate", "coin"])),
    ("RollReport.source", ORIGINS),
    ("SessionEventResult.status", Of(&["stored", "duplicate", "unchanged"])),
    ("Turn.kind", Of(&["npc", "owner", "gm", "rules", "planner"])),
    ("TurnReverting.into", Of(&["failed", "cancelled", "undone"])),
    ("get_encounter.verbosity", Of(&["minimal", "summary", "standard", "detailed"])),
    ("list_memories.source", SOURCES),
    ("list_npc_memories.source", SOURCES),
    ("list_owner_memories.source", SOURCES),
    ("get_srd_table.table", Of(&["weapons", "armor", "conditions", "spells", "skills"])),
];

fn of(name: &str, member: &str) -> Option<&'static Values> {
    let at = format!("{name}.{member}");
    VALUES.iter().find(|(place, _)| *place == at).map(|(_, values)| values)
}

/// Declares the enums.
pub fn list(document: &mut Value) {
    operations(document, |_, _, operation| {
        let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            if let Some(values) = of(&id, &name) {
                restrict(&mut parameter["schema"], values);
            }
        }
    });
    for (name, schema) in schemas(document).into_iter().flatten() {
        members(name, schema);
    }
}

fn members(name: &str, schema: &mut Value) {
    for (member, value) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(values) = of(name, member) {
            restrict(value, values);
        }
    }
    schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten().for_each(|part| members(name, part));
}

fn restrict(schema: &mut Value, values: &Values) {
    let is_nullable = schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == "null"));
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("maxLength");
    match values {
        Of(values) => {
            let mut all: Vec<Value> = values.iter().map(|value| json!(value)).collect();
            if is_nullable {
                all.push(Value::Null);
            }
            members.insert("enum".to_owned(), all.into());
        }
        As(name) => {
            let mut named = reference(name);
            if is_nullable {
                named = json!({ "oneOf": [{ "type": "null" }, named] });
            }
            for word in ["description", "default"] {
                if let (Some(said), Some(named)) = (members.get(word), named.as_object_mut()) {
                    named.insert(word.to_owned(), said.clone());
                }
            }
            *members = named.as_object().cloned().unwrap_or_else(Object::new);
        }
    }
}
