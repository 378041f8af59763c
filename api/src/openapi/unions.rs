//! Unions with a discriminator: each kind is a schema of its own, and one member says which it is.
//!
//! utoipa writes the kinds of a tagged enum in place: [`name`] gives them names. What one struct reads for all kinds, such as an action
//! of an encounter, is taken apart by a table: [`ACTIONS`]. To add an action: its line there.

use serde_json::{Map, Value, json};

use super::{
    document::{Object, reference, schemas},
    names::camel,
};

/// Members that say which kind a value is.
const TAGS: [&str; 4] = ["event", "type", "until", "action"];

/// What every action of an encounter takes.
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

/// Each action with what it needs and what else it reads.
pub const ACTIONS: &[(&str, &[&str], &[&[&str]])] = &[
    ("attack", &[], &[ATTACK]),
    ("cast_spell", &[], &[ATTACK, &["level"]]),
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
    ("move", &[], &[&["position", "path", "amount"]]),
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
    ("hide", &[], &[&["description"]]),
    ("ready", &[], &[&["description"]]),
    ("search", &[], &[&["description"]]),
    ("use_object", &[], &[&["description"]]),
    ("improvise", &[], &[&["description"]]),
];

/// Gives the kinds of every union names, and takes actions apart.
pub fn name(document: &mut Value) {
    let Some(known) = schemas(document) else { return };
    actions(known);
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

/// The member that says which kind a value of a union is, if it is one whose kinds stand in place.
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
        let says = all["action"]["description"].clone();
        properties.insert("action".to_owned(), json!({ "type": "string", "enum": [action], "description": says }));
        let required: Vec<&str> = std::iter::once("action").chain(needs.iter().copied()).collect();
        json!({
            "type": "object", "description": format!("The action `{action}`. Members of other actions are not looked at."),
            "required": required, "properties": properties,
        })
    });
    let (kinds, says): (Vec<Value>, _) = (kinds.collect(), whole["description"].clone());
    *whole = json!({ "description": says, "oneOf": kinds });
}
