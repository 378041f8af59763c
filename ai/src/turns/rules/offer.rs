//! The tools that a model is offered, with the arguments that an action can determine. A tool's other arguments are for frontends
//! and game masters. The model never decides whether anything is applied.

use std::sync::LazyLock;

use serde_json::{Value, json, value::RawValue};

use super::fight;
use crate::tools::{self, Tool, as_meant};

/// A tool, the offered arguments, and the offered arguments of `context`.
struct Offer {
    tool: &'static str,
    arguments: &'static [&'static str],
    context: &'static [&'static str],
}

const OFFERS: &[Offer] = &[
    Offer {
        tool: "resolve_attack",
        arguments: &[
            "weapon",
            "target",
            "extra_damage_sources",
            "is_spell_attack",
            "spell_name",
            "slot_level",
            "two_handed",
            "advantage",
            "cover",
            "context",
        ],
        context: &["ally_adjacent", "hostile_adjacent", "attacker_unseen", "target_unseen", "off_hand", "distance_ft"],
    },
    Offer {
        tool: "resolve_skill_check",
        arguments: &["skill", "dc", "ability", "advantage", "context"],
        context: &["sight_needed", "hearing_needed"],
    },
    Offer { tool: "resolve_ability_check", arguments: &["ability", "dc", "advantage"], context: &[] },
    Offer { tool: "resolve_saving_throw", arguments: &["ability", "dc", "source", "advantage"], context: &[] },
    Offer { tool: "mark_impossible", arguments: &["reason"], context: &[] },
    Offer { tool: "mark_no_check", arguments: &["reason"], context: &[] },
];

/// Arguments of all resolvers that a model may not decide.
const SERVERS: &[&str] = &["preview", "apply", "encounter_id"];
/// Arguments that a fight itself knows for an attack.
const OF_THE_FIGHT: &[&str] = &["advantage", "cover"];

/// Whether a model may call the tool.
pub(super) fn offers(name: &str, fights: bool) -> bool {
    OFFERS.iter().any(|offer| offer.tool == name) || (fights && name == fight::TOOL)
}

/// The offered tools, each with the schema of its offered arguments.
pub(super) fn tools(fights: bool) -> impl Iterator<Item = (&'static Tool, Value)> {
    let offered = OFFERS.iter().filter_map(move |offer| {
        let tool = tools::find(offer.tool)?;
        let mut schema = tool.schema().clone();
        keep(&mut schema, offer.arguments);
        if let Some(context) = schema.pointer_mut("/properties/context") {
            keep(context, if fights { &["off_hand"] } else { offer.context });
        }
        if let Some(properties) = schema["properties"].as_object_mut().filter(|_| fights && offer.tool == fight::ATTACK)
        {
            properties.retain(|name, _| !OF_THE_FIGHT.contains(&name.as_str()));
        }
        Some((tool, schema))
    });
    let acting = fights.then(|| Some((tools::find(fight::TOOL)?, fight::schema()))).flatten();
    offered.chain(acting)
}

fn keep(schema: &mut Value, names: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| names.contains(&name.as_str()));
    }
}

/// The offered tools in the format for models.
pub(super) fn definitions(fights: bool) -> Option<&'static RawValue> {
    static AT_PEACE: LazyLock<Option<Box<RawValue>>> = LazyLock::new(|| serialize_definitions(false));
    static IN_A_FIGHT: LazyLock<Option<Box<RawValue>>> = LazyLock::new(|| serialize_definitions(true));
    if fights { IN_A_FIGHT.as_deref() } else { AT_PEACE.as_deref() }
}

fn serialize_definitions(fights: bool) -> Option<Box<RawValue>> {
    let define = |(tool, schema): (&Tool, Value)| {
        json!({ "type": "function",
            "function": { "name": tool.name, "description": tool.description, "parameters": schema } })
    };
    serde_json::value::to_raw_value(&tools(fights).map(define).collect::<Vec<_>>()).ok()
}

/// A model's proposed arguments, as it meant them, without those that it may not decide.
pub(super) fn proposed(name: &str, fights: bool, mut arguments: Value) -> Value {
    if fights && name == fight::TOOL {
        as_meant(&fight::schema(), &mut arguments);
    } else if let Some(tool) = tools::find(name) {
        as_meant(tool.schema(), &mut arguments);
    }
    if let Some(members) = arguments.as_object_mut() {
        members.retain(|name, _| !SERVERS.contains(&name.as_str()));
    }
    arguments
}
