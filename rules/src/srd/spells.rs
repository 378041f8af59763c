//! A spell's numbers, as resolvers need them. The spells themselves are in `spell_table`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Ability;

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
    /// It always hits.
    Automatic,
    /// It heals.
    Healing,
    /// It puts an effect or a condition on its target.
    Effect,
}

/// How much of the damage a successful saving throw leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpellOnSave)]
pub enum OnSave {
    /// Half of the damage.
    Half,
    /// None of it.
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
    /// One more of its damage dice.
    Dice,
    /// One more beam, with its own attack roll.
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
    /// 0 for a cantrip, otherwise 1 to 9.
    pub level: u8,
    /// How it reaches its target.
    pub attack: SpellKind,
    /// The ability of the target's saving throw.
    #[schema(required = true)]
    pub save: Option<Ability>,
    /// How much of the damage a successful save leaves.
    pub on_save: OnSave,
    /// Damage or healing with the lowest slot.
    #[schema(value_type = Vec<SpellDamage>)]
    pub damage: &'static [SpellDamage],
    /// Whether the caster's modifier is added once.
    pub adds_modifier: bool,
    /// The number of rays, darts or beams, each with its own dice.
    pub shots: u8,
    /// Dice added to the first damage for each step of a higher slot; empty if none.
    #[schema(value_type = String)]
    pub upcast: &'static str,
    /// The number of slot levels in one step of `upcast`.
    pub upcast_per: u8,
    /// Rays or darts added for each slot level above the lowest.
    pub upcast_shots: u8,
    /// What a cantrip gains with character levels.
    pub scaling: Scaling,
    /// Range in feet: 5 for touch, 0 for the caster itself.
    pub range_ft: u16,
    /// How far its area extends beyond the range, in feet; `None` for a spell with individual targets.
    #[schema(required = true)]
    pub area_ft: Option<u16>,
    /// Whether the caster must see a target.
    pub sight: bool,
    /// Whether it requires concentration.
    pub concentration: bool,
    /// Whether cover does not help against it.
    pub ignores_cover: bool,
    /// The condition that it puts on a target that fails.
    #[schema(value_type = Option<String>, required = true)]
    pub condition: Option<&'static str>,
    /// The effect that it puts on its target.
    #[schema(value_type = Option<String>, required = true)]
    pub effect: Option<&'static str>,
}
