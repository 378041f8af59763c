//! What a spell is, for the resolvers; the spells themselves are in `spell_table`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Ability, Found, SPELLS, find};

/// How a spell reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpellKind {
    /// A ranged spell attack.
    Ranged,
    /// A melee spell attack.
    Melee,
    /// The target makes a saving throw.
    Save,
    /// It does not miss.
    Automatic,
    /// It heals.
    Healing,
    /// It puts an effect or a condition on its target.
    Effect,
}

/// What a saving throw that succeeds saves from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpellOnSave)]
pub enum OnSave {
    /// Half of the damage remains.
    Half,
    /// Nothing happens.
    #[default]
    None,
}

/// What a cantrip gains at the character levels 5, 11 and 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpellScaling)]
pub enum Scaling {
    /// Nothing.
    None,
    /// Another of its damage dice.
    Dice,
    /// Another beam, which is an attack of its own.
    Beams,
}

/// Damage or healing of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdSpellDamage)]
pub struct SpellDamage {
    /// Dice and constant.
    #[schema(value_type = String)]
    pub dice: &'static str,
    /// Damage type; empty for healing.
    #[schema(value_type = String)]
    pub damage_type: &'static str,
}

/// A spell's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdSpell)]
pub struct SpellRule {
    /// Name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// 0 for a cantrip, else 1 to 9.
    pub level: u8,
    /// How it reaches its target.
    pub attack: SpellKind,
    /// The ability of the target's saving throw.
    #[schema(required = true)]
    pub save: Option<Ability>,
    /// What a successful save leaves.
    pub on_save: OnSave,
    /// Damage or healing with the lowest slot.
    #[schema(value_type = Vec<SpellDamage>)]
    pub damage: &'static [SpellDamage],
    /// Whether the caster's modifier is added once.
    pub adds_modifier: bool,
    /// Rays, darts or beams, each with dice of its own.
    pub shots: u8,
    /// Dice added to the first damage per step of a higher slot; empty for none.
    #[schema(value_type = String)]
    pub upcast: &'static str,
    /// How many slot levels are a step of `upcast`.
    pub upcast_per: u8,
    /// Rays or darts added per slot level above the lowest.
    pub upcast_shots: u8,
    /// What character levels add to a cantrip.
    pub scaling: Scaling,
    /// Range in feet: 5 is touch, 0 the caster itself.
    pub range_ft: u16,
    /// How many feet beyond that its area reaches; none for a spell that names its targets.
    #[schema(required = true)]
    pub area_ft: Option<u16>,
    /// Whether the caster has to see a target.
    pub sight: bool,
    /// Whether it asks for concentration.
    pub concentration: bool,
    /// Whether cover does not help against it.
    pub ignores_cover: bool,
    /// The condition it puts on a target that fails.
    #[schema(value_type = Option<String>, required = true)]
    pub condition: Option<&'static str>,
    /// The effect it puts on its target.
    #[schema(value_type = Option<String>, required = true)]
    pub effect: Option<&'static str>,
}

/// The spell of this name: exact, in any case, or the only one whose name it is a part of.
#[must_use]
pub fn spell(name: &str) -> Found<&'static SpellRule> {
    find(&SPELLS, |s| s.name, name)
}
