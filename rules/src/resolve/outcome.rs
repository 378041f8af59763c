//! The answer of a resolver.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::StateChange;
use crate::srd::Advantage;

/// A text that is usually fixed.
pub(crate) type Text = Cow<'static, str>;

/// The result of an attack, a check, a save or anything else that was resolved. In a fight, whoever is not the game master gets of
/// enemies' rolls, dice and damage only what shows how they fare, and never the target number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RulesOutcome)]
pub struct Outcome {
    /// `Longsword Attack`, `Stealth Check`, `Dexterity Saving Throw`, `Fire Bolt Spell Attack`,
    /// `Fireball (dexterity save)`, `IMPOSSIBLE`, `NONE`.
    pub check_type: String,
    /// Modifiers as text, then their sum: `DEX +3, Prof +3, Bonus +1 = +7`.
    #[schema(required = false)]
    pub components: String,
    /// The d20 that counts; 0 if none was rolled.
    #[schema(required = false)]
    pub die_result: u32,
    /// The sum of all modifiers, with its sign.
    #[schema(required = false)]
    pub total_modifier: String,
    /// The d20 plus modifiers; 0 if none was rolled. For a passive check its value, for a group check the number of
    /// successes, for healing and rests the hit points.
    #[schema(required = false)]
    pub total: i32,
    /// The target number: `15`, `DC 15` for a save against a spell, `N/A`.
    #[schema(required = false)]
    pub dc_or_ac: String,
    /// Whether the actor succeeded. For a spell with a save: whether the target failed.
    pub success: bool,
    /// The result in a sentence or two.
    #[schema(required = false)]
    pub notes: String,
    /// The result in a word or two: `hit`, `critical hit`, `miss`, `success`, `target failed the save`.
    pub outcome: String,
    /// True if the rules forbid it; `notes` says why.
    #[serde(default, skip_serializing_if = "is_false")]
    pub impossible: bool,
    /// True if no roll was needed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_check: bool,
    /// Set if it failed or succeeded without a roll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
    /// The damage, if it hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Each modifier separately.
    #[schema(required = false)]
    pub modifiers: Vec<Modifier>,
    /// Whether the d20 was rolled with advantage or disadvantage, after all sources.
    pub advantage: Advantage,
    /// Every source of advantage and disadvantage, what applied automatically, and what was refused and why.
    #[schema(required = false, value_type = Vec<String>)]
    pub reasons: Vec<Text>,
    /// Every die, in the order of rolling.
    #[schema(required = false)]
    pub dice: Vec<DieShown>,
    /// Beams, rays and darts, if there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<AttackRoll>,
    /// Everybody's rolls in a contest or a group check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<ParticipantRoll>,
    /// The changes to make, in order. None has been made yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<StateChange>,
    /// Seven lines for a narrator; two if nothing was rolled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub raw: String,
    /// Who takes part. Decides which parts a player may see, and is never sent.
    #[serde(skip)]
    pub parties: Parties,
}

/// Who takes part in what was resolved, by [`Creature::key`](crate::sheet::Creature::key).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parties {
    /// Whose roll it is. For what needs no d20: who casts, falls, rests, or is hurt or healed. Empty if nobody did anything.
    pub rolled: Vec<String>,
    /// The targets and, for a save against a spell, its caster.
    pub others: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A result that needs no roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AutomaticResult)]
pub enum Automatic {
    /// It fails.
    Failure,
    /// It succeeds.
    Success,
}

/// A number that is added to a roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RollModifier)]
pub struct Modifier {
    /// Its source: `DEX`, `Prof`, `Bless`.
    #[schema(value_type = String)]
    pub label: Text,
    /// The number.
    pub value: i32,
}

/// A rolled die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DieShown {
    /// The number of sides.
    pub faces: u32,
    /// Its value.
    pub value: u32,
    /// Whether it counts.
    pub kept: bool,
    /// What it was rolled for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Text>,
    /// Who rolled it, if not those whose roll the outcome is. Never sent.
    #[serde(skip)]
    pub by: Option<String>,
}

/// Rolled damage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RolledDamage)]
pub struct Damage {
    /// One row for each source.
    pub breakdown: Vec<DamageRow>,
    /// The sum, at least 0, after a save that halves it but before the target's resistances.
    pub total_damage: i32,
    /// Whether the dice were doubled.
    pub is_crit: bool,
    /// The damage that the target took, after resistances, vulnerabilities and reactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<i32>,
}

/// Damage of one source. Of an enemy's, players get only the type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RolledDamageRow)]
pub struct DamageRow {
    /// The source.
    #[schema(required = false)]
    pub label: String,
    /// Its dice, doubled for a critical hit; empty if there are none.
    #[schema(required = false)]
    pub dice: String,
    /// The values of the dice, after rerolls.
    #[schema(required = false)]
    pub rolls: Vec<u32>,
    /// The constant.
    #[schema(required = false)]
    pub flat_bonus: i32,
    /// Dice and constant.
    #[schema(required = false)]
    pub subtotal: i32,
    /// Damage type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub damage_type: Option<Text>,
}

/// One beam, ray or dart of several. Of an enemy's, players get only whether it hit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttackRoll {
    /// The d20 that counts; 0 if it cannot miss.
    #[schema(required = false)]
    pub die_result: u32,
    /// The sum of the modifiers.
    #[schema(required = false)]
    pub total_modifier: String,
    /// Their sum.
    #[schema(required = false)]
    pub total: i32,
    /// Whether it hit.
    pub success: bool,
    /// `hit`, `critical hit`, `miss`.
    #[schema(required = false)]
    pub outcome: String,
    /// Its damage, if it hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

/// One creature's roll among others. Of an enemy's, players get only the name and the success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParticipantRoll {
    /// The creature's id, or its name if it has none.
    #[schema(required = false)]
    pub creature: String,
    /// The creature's name.
    pub name: String,
    /// What it rolled.
    #[schema(required = false)]
    pub check_type: String,
    /// Its modifiers, as text.
    #[schema(required = false)]
    pub components: String,
    /// The d20 that counts.
    #[schema(required = false)]
    pub die_result: u32,
    /// The sum of the modifiers.
    #[schema(required = false)]
    pub total_modifier: String,
    /// Their sum.
    #[schema(required = false)]
    pub total: i32,
    /// Whether this roll succeeded.
    pub success: bool,
    /// Whether the d20 was rolled with advantage or disadvantage.
    #[schema(required = false)]
    pub advantage: Advantage,
    /// Set if it failed or succeeded without a roll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
}
