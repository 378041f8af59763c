//! Unions with a discriminator: each kind gets its own schema, and one member tells which kind a value is.
//!
//! utoipa writes the kinds of a tagged enum inline; [`name`] gives them names. A struct that is used for all kinds,
//! such as an action in an encounter, is split with the table [`ACTIONS`]. To add an action, add a line there.

use serde_json::{Map, Value, json};

use super::{
    document::{Object, reference, schemas},
    names::{self, camel},
    words,
};
use ai::{commands, tools};

/// The members that tell which kind a value is.
const TAGS: [&str; 6] = ["event", "type", "until", "action", "tool", "command"];

/// The members that every action of an encounter accepts.
const ANY_ACTION: &[&str] = &["participant_id", "cost", "override", "dice", "preview", "context"];
const ATTACK: &[&str] = &[
    "target_id",
    "target_ids",
    "weapon",
    "extra_damage_sources",
    "is_spell_attack",
    "spell_name",
    "slot_level",
    "two_handed",
    "advantage",
    "cover",
];
const DAMAGE: &[&str] = &["target_id", "amount", "damage_type", "parts", "magical", "critical", "advantage", "cover"];
const CONTEST: &[&str] = &["target_id", "advantage", "cover"];

/// An action's name, its required members, and lists of its optional ones.
type Action = (&'static str, &'static [&'static str], &'static [&'static [&'static str]]);

/// Every action, with its required and optional members.
pub const ACTIONS: &[Action] = &[
    ("attack", &[], &[ATTACK]),
    ("cast_spell", &[], &[ATTACK]),
    ("damage", &[], &[DAMAGE]),
    ("heal", &[], &[&["target_id", "amount", "formula"]]),
    ("temp_hp", &["amount"], &[&["target_id"]]),
    (
        "add_condition",
        &["condition"],
        &[&["target_id", "rounds", "duration", "save_dc", "save_ability", "source", "description", "level"]],
    ),
    ("remove_condition", &["condition"], &[&["target_id", "level"]]),
    ("add_effect", &["effect"], &[&["target_id", "rounds", "source"]]),
    ("remove_effect", &["effect"], &[&["target_id"]]),
    ("use_spell_slot", &[], &[&["target_id", "level", "slot_level"]]),
    ("use_resource", &["resource"], &[&["target_id", "amount"]]),
    ("move", &[], &[&["position", "path", "amount", "target_id", "away"]]),
    ("stand_up", &[], &[]),
    ("death_save", &[], &[&["target_id", "advantage", "cover"]]),
    ("roll_initiative", &[], &[&["target_id", "amount", "advantage"]]),
    ("advance_turn", &[], &[]),
    ("dash", &[], &[]),
    ("disengage", &[], &[]),
    ("dodge", &[], &[]),
    ("help", &[], &[&["target_id"]]),
    ("grapple", &[], &[CONTEST]),
    ("shove", &[], &[CONTEST, &["away"]]),
    ("escape", &[], &[CONTEST]),
    ("end_concentration", &[], &[&["target_id"]]),
    ("conceal", &[], &[&["target_id"]]),
    ("reveal", &[], &[&["target_id"]]),
    ("hide", &[], &[&["description"]]),
    ("ready", &[], &[&["description"]]),
    ("search", &[], &[&["description"]]),
    ("use_object", &[], &[&["description"]]),
    ("improvise", &[], &[&["description"]]),
];

/// The least and the largest number of an action's member, where the action takes fewer than others do.
const RANGES: &[(&str, &str, i32, i32)] = &[
    ("damage", "amount", 0, 1_000_000),
    ("heal", "amount", 0, 1_000_000),
    ("temp_hp", "amount", 0, 1_000_000),
    ("use_resource", "amount", 1, 1_000_000),
    ("move", "amount", 1, 1_000_000),
    ("add_condition", "level", 1, 6),
    ("remove_condition", "level", 1, 6),
];

/// Names the kinds of every union, and splits the actions.
pub fn name(document: &mut Value) {
    let Some(known) = schemas(document) else { return };
    actions(known);
    spread(known);
    let answers = tools::REGISTRY.iter().map(|tool| (tool.name, tool.answer()));
    results(known, "ToolResult", "tool", answers);
    let answers = commands::REGISTRY.iter().map(|command| (command.name, command.answer()));
    results(known, "CommandResult", "command", answers);
    let unions: Vec<String> =
        known.iter().filter(|(_, schema)| tag_of(schema).is_some()).map(|(name, _)| name.clone()).collect();
    for union in unions {
        let Some(schema) = known.get_mut(&union) else { continue };
        let Some(tag) = tag_of(schema) else { continue };
        let kinds = schema["oneOf"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let (mut items, mut mapping, mut named) = (Vec::new(), Map::new(), Vec::new());
        for kind in kinds {
            let Some(value) = kind["properties"][tag]["enum"][0].as_str().map(ToOwned::to_owned) else { continue };
            let name = format!("{union}{}", camel(&value));
            let to = reference(&name);
            mapping.insert(value, to["$ref"].clone());
            items.push(to);
            named.push((name, kind));
        }
        schema["oneOf"] = items.into();
        schema["discriminator"] = json!({ "propertyName": tag, "mapping": mapping });
        known.extend(named);
    }
}

/// A schema that joins a union with further members becomes a union whose kinds all have these members, because client
/// generators cannot join unions.
fn spread(known: &mut Object) {
    let unions = known.clone();
    let union_of = |part: &Value| {
        let name = part.get("$ref")?.as_str()?.rsplit('/').next()?;
        unions.get(name).filter(|schema| tag_of(schema).is_some())
    };
    for schema in known.values_mut() {
        let Some(parts) = schema.get("allOf").and_then(Value::as_array) else { continue };
        let Some(union) = parts.iter().find_map(union_of) else { continue };
        let beside: Vec<_> = parts.iter().filter(|part| part.get("properties").is_some()).collect();
        let mut kinds = union["oneOf"].as_array().cloned().unwrap_or_default();
        for kind in &mut kinds {
            beside.iter().for_each(|part| join(kind, part));
        }
        *schema = json!({ "description": schema["description"], "oneOf": kinds });
    }
}

/// Adds the members of `part` to an object.
fn join(whole: &mut Value, part: &Value) {
    if let (Some(own), Some(more)) = (whole["properties"].as_object_mut(), part["properties"].as_object()) {
        own.extend(more.clone());
    }
    if let (Some(own), Some(more)) = (whole["required"].as_array_mut(), part["required"].as_array()) {
        own.extend(more.clone());
    }
}

/// Splits a result by the tool or command that it comes from. Each kind has its own `result`.
fn results(
    known: &mut Object,
    union: &str,
    tag: &str,
    answers: impl Iterator<Item = (&'static str, tools::spec::Schemas)>,
) {
    let Some(whole) = known.get_mut(union) else { return };
    let kinds = answers.map(|(name, answer)| {
        let mut kind = whole.clone();
        kind["description"] = format!("The result of `{name}`.").into();
        kind["properties"][tag] = json!({ "type": "string", "enum": [name] });
        if let Some((answer, _)) = answer.first() {
            kind["properties"]["result"] = reference(&names::of_schema(answer));
        }
        kind
    });
    let (kinds, says): (Vec<Value>, _) = (kinds.collect(), whole["description"].clone());
    *whole = json!({ "description": says, "oneOf": kinds });
}

/// The member that tells which kind a value is, if the schema is a union with inline kinds.
fn tag_of(schema: &Value) -> Option<&'static str> {
    let kinds = schema.get("oneOf")?.as_array().filter(|kinds| kinds.len() > 1)?;
    let says = |tag: &str| {
        kinds.iter().all(|kind| kind["properties"][tag]["enum"].as_array().is_some_and(|values| values.len() == 1))
    };
    TAGS.into_iter().find(|tag| says(tag))
}

fn actions(known: &mut Object) {
    let Some(whole) = known.get_mut("EncounterAction") else { return };
    let kinds = ACTIONS.iter().map(|(action, needs, takes)| {
        let all = &whole["properties"];
        let taken = ANY_ACTION.iter().chain(*needs).chain(takes.iter().flat_map(|some| some.iter()));
        let mut properties: Map<String, Value> =
            taken.filter_map(|member| Some(((*member).to_owned(), all.get(*member)?.clone()))).collect();
        let own = format!("EncounterAction{}", camel(action));
        for (member, of) in properties.iter_mut().filter_map(|(member, of)| Some((member, of.as_object_mut()?))) {
            // What the member means in this action is said instead of what it means in all of them.
            if words::has_own(&own, member) {
                of.remove("description");
            }
            if let Some((_, _, least, most)) = RANGES.iter().find(|(of, name, ..)| of == action && name == member) {
                of.insert("minimum".to_owned(), (*least).into());
                of.insert("maximum".to_owned(), (*most).into());
            }
        }
        let says = all["action"]["description"].clone();
        properties.insert("action".to_owned(), json!({ "type": "string", "enum": [action], "description": says }));
        let required: Vec<&str> = std::iter::once("action").chain(needs.iter().copied()).collect();
        json!({
            "type": "object", "description": format!("The action `{action}`. Members that belong to other actions are ignored."),
            "required": required, "properties": properties,
        })
    });
    let (kinds, says): (Vec<Value>, _) = (kinds.collect(), whole["description"].clone());
    *whole = json!({ "description": says, "oneOf": kinds });
}
