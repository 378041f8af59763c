//! The means of an attack.

use serde::{Deserialize, Serialize};

/// The means of an attack (tool `resolve_attack`). Its target is an argument of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttackArgs {
    /// The name of a weapon, or of an attack in a stat block. Not needed with `spell_name`, or if there is only one.
    pub weapon: Option<String>,
    /// Damage sources to use, such as `Sneak Attack` or `Divine Smite 2`.
    pub extra_damage_sources: Vec<String>,
    /// Whether `weapon` names a spell.
    pub is_spell_attack: bool,
    /// The spell to attack with.
    pub spell_name: Option<String>,
    /// The slot to cast or smite with. Default: the lowest possible.
    pub slot_level: Option<i32>,
    /// Whether a versatile weapon is held in two hands.
    pub two_handed: bool,
}
