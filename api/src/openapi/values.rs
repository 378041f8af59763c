//! Declares enums for members whose Rust type is a string but that have a fixed set of values.
//!
//! Rust enums need no line here. A line has `Schema.member` or `operation.parameter`, and the values or the schema with
//! the values.

use serde_json::{Value, json};

use super::document::{Object, operations, reference, schemas};
use base::error::Code;

/// The values that a string may have.
enum Values {
    /// One of these.
    Of(&'static [&'static str]),
    /// The values of another schema, by its name.
    As(&'static str),
    /// One of a list in the code.
    Listed(fn() -> Vec<&'static str>),
}
use Values::{As, Listed, Of};

const ORIGINS: Values = Of(&["server", "frontend", "manual", "seeded"]);
const SOURCES: Values = Of(&["personal", "private", "broadcast", "editor", "import"]);
const OPS: Values = Of(&["insert", "update", "delete"]);
const CAUSES: Values = Of(&["api", "turn", "import", "fork", "revert", "system"]);
const DURATIONS: Values = Of(&["rounds", "concentration", "until_dispelled", "until_rest", "save_ends"]);
const ABILITIES: Values = Of(&rules::ABILITIES);
const CODES: Values = Listed(|| Code::ALL.iter().map(|code| code.as_str()).collect());
const SIZES: Values = Of(&rules::SIZES);
const TOLD: Values = Of(&["overview", "delta"]);

const VALUES: &[(&str, Values)] = &[
    ("AccessToken.token_type", Of(&["Bearer"])),
    ("AttackRoll.outcome", Of(&["hit", "critical hit", "miss"])),
    ("CampaignDocument.format", Of(&["tavernkeep.campaign"])),
    ("CharacterCard.spec", Of(&["chara_card_v3"])),
    ("CharacterCard.spec_version", Of(&["3.0"])),
    ("CharacterInput.size", SIZES),
    ("CharacterInput.spellcasting_ability", ABILITIES),
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
    ("EncounterParticipantInput.size", SIZES),
    ("EncounterRecord.outcome", As("EncounterOutcome")),
    ("EncounterRecord.status", As("EncounterStatus")),
    ("EncounterListed.status", As("EncounterStatus")),
    (
        "FailedPredicate.code",
        Of(&[
            "known_ability",
            "dc_in_bounds",
            "actor_exists",
            "target_exists",
            "not_your_turn",
            "no_action_left",
            "not_dying",
            "encounter_already_ended",
            "encounter_not_ended",
        ]),
    ),
    ("Health.status", Of(&["ok"])),
    ("ImportedRow.action", Of(&["created", "updated", "unchanged"])),
    ("HistoryMessage.type", Of(&["chat", "roll", "card", "system", "whisper"])),
    ("JournalChange.op", OPS),
    ("JournalChange.origin", CAUSES),
    ("Revision.op", OPS),
    ("Revision.origin", CAUSES),
    ("LoreDuplicate.same", Of(&["title", "content"])),
    ("LoreLink.kind", Of(&["lore", "character", "npc", "owner"])),
    ("MessageText.role", Of(&["system", "user", "assistant"])),
    ("Problem.code", CODES),
    ("PromptPreview.context", TOLD),
    ("Turn.context", TOLD),
    ("NamedEntity.type", Of(&["npc", "owner"])),
    ("ReactingEntity.type", Of(&["npc", "owner"])),
    ("TriggeredReaction.status", Of(&["queued"])),
    ("Readiness.status", Of(&["ready"])),
    ("Reaction.kind", Of(&["significance", "prayer"])),
    ("RehearsedConcern.reason", Of(&["target", "location", "race", "profession", "faction"])),
    ("PromptView.cache", Of(&["hit", "miss"])),
    ("RestInput.type", Of(&["short", "long"])),
    ("RolledDie.kind", Of(&["fate", "coin"])),
    ("RollReport.source", ORIGINS),
    ("SessionEventResult.status", Of(&["stored", "duplicate", "unchanged"])),
    ("ToolDefinition.type", Of(&["function"])),
    ("TurnCancelling.status", Of(&["cancelling"])),
    ("TurnReverting.into", Of(&["failed", "cancelled", "undone"])),
    ("UsageRow.kind", Of(&["npc", "owner", "gm", "rules", "planner", "lab", "test"])),
    ("UsageRow.task", Of(&["npc", "owner", "gm", "classify", "narrate", "plan", "extract"])),
    ("get_encounter.verbosity", Of(&["minimal", "summary", "standard", "detailed"])),
    ("list_memories.source", SOURCES),
    ("list_npc_memories.source", SOURCES),
    ("list_owner_memories.source", SOURCES),
    ("get_srd_table.table", Of(&["weapons", "armor", "conditions", "spells", "skills", "creatures"])),
];

fn of(name: &str, member: &str) -> Option<&'static Values> {
    // A patch has the members of the whole.
    let name = name.strip_suffix("Patch").map_or_else(|| name.to_owned(), |whole| format!("{whole}Input"));
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
    let mut one_of = |values: &[&str]| {
        let values = values.iter().map(|value| json!(value));
        members.insert("enum".to_owned(), values.chain(is_nullable.then_some(Value::Null)).collect());
    };
    match values {
        Of(values) => one_of(values),
        Listed(values) => one_of(&values()),
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
