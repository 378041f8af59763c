//! The names of the AI's tools, and what they cost owners. World rows and settings list tools; the tools themselves are in a layer
//! above.
//!
//! To add a tool, add its name here. A test compares the list with the registry.

use entity::shapes::ToolRef;

/// Every tool, in the order of the registry.
pub const NAMES: &[&str] = &[
    "NPC_memorize",
    "OWNER_memorize",
    "OWNER_memorize_dependables",
    "change_npc_behavior",
    "change_npc_stats",
    "grant_passive_skill",
    "modify_resource",
    "send_message",
    "spawn_entity",
    "trigger_world_event",
    "get_actor_details",
    "get_current_scene",
    "get_encounter",
    "get_message_history",
    "get_party_members",
    "measure_distance",
    "post_message",
    "recall",
    "roll_dice",
    "search_lore",
    "manage_encounter",
    "encounter_action",
    "apply_damage",
    "apply_healing",
    "mark_impossible",
    "mark_no_check",
    "resolve_ability_check",
    "resolve_attack",
    "resolve_concentration",
    "resolve_contest",
    "resolve_death_save",
    "resolve_fall",
    "resolve_group_check",
    "resolve_passive",
    "resolve_saving_throw",
    "resolve_skill_check",
    "roll_initiative",
    "take_rest",
];

/// Older names of tools. They still work.
pub const OLDER_NAMES: &[&str] = &["create_encounter", "end_encounter", "get_messages", "post_messages"];

/// The tool with which an NPC remembers.
pub const NPC_MEMORY: &str = "NPC_memorize";

/// The tools with which NPCs and owners remember. They change nothing else.
pub const REMEMBERING: &[&str] = &[NPC_MEMORY, "OWNER_memorize", "OWNER_memorize_dependables"];

/// The tools that change nothing: they read, measure, roll dice or say what a check comes to.
const QUIET: &[&str] = &[
    "get_actor_details",
    "get_current_scene",
    "get_encounter",
    "get_message_history",
    "get_messages",
    "get_party_members",
    "measure_distance",
    "recall",
    "roll_dice",
    "search_lore",
    "mark_impossible",
    "mark_no_check",
    "resolve_ability_check",
    "resolve_contest",
    "resolve_group_check",
    "resolve_passive",
    "resolve_skill_check",
];

/// The default prices of tools for owners. All other tools are free.
pub const PRICES: &[(&str, f64)] = &[
    ("OWNER_memorize", 5.0),
    ("OWNER_memorize_dependables", 20.0),
    ("send_message", 10.0),
    ("change_npc_behavior", 20.0),
    ("change_npc_stats", 30.0),
    ("trigger_world_event", 35.0),
    ("spawn_entity", 40.0),
    ("modify_resource", 20.0),
    ("grant_passive_skill", 45.0),
];

/// Whether there is such a tool.
#[must_use]
pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || OLDER_NAMES.contains(&name)
}

/// Whether a tool acts on the world. A tool that no list names does.
#[must_use]
pub fn acts(name: &str) -> bool {
    !REMEMBERING.contains(&name) && !QUIET.contains(&name)
}

/// The positions of the tools that do not exist, and their names.
pub fn unknown(listed: &[ToolRef]) -> impl Iterator<Item = (usize, &str)> {
    listed.iter().map(ToolRef::name).enumerate().filter(|(_, name)| !is_known(name))
}
