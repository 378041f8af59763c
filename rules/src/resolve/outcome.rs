//! What a resolver answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Advantage, StateChange, d20::D20Test, summary};

/// Text that is mostly fixed.
pub(crate) type Text = Cow<'static, str>;

/// What came of an attack, a check, a save or anything else that was resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RulesOutcome)]
pub struct Outcome {
    /// `Longsword Attack`, `Stealth Check`, `Dexterity Saving Throw`, `Fire Bolt Spell Attack`,
    /// `Fireball (dexterity save)`, `IMPOSSIBLE`, `NONE`.
    pub check_type: String,
    /// Modifiers as text, then their sum: `DEX +3, Prof +3, Bonus +1 = +7`.
    pub components: String,
    /// The d20 that counted; 0 when none was rolled.
    pub die_result: u32,
    /// Everything added to the d20, with its sign.
    pub total_modifier: String,
    /// d20 and modifiers; 0 when none was rolled. Of a passive check its value, of a group check how many succeeded, of
    /// healing and rests the hit points.
    pub total: i32,
    /// What had to be reached: `15`, `DC 15` for a save against a spell, `N/A`.
    #[schema(required = false)]
    pub dc_or_ac: String,
    /// Whether the actor had success; with a spell that asks for a save: whether its target failed.
    pub success: bool,
    /// The result in a sentence or two.
    #[schema(required = false)]
    pub notes: String,
    /// The result in a word or two: `hit`, `critical hit`, `miss`, `success`, `target failed the save`.
    pub outcome: String,
    /// It cannot be done; `notes` says why.
    #[serde(default, skip_serializing_if = "is_false")]
    pub impossible: bool,
    /// Nothing had to be rolled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_check: bool,
    /// It failed or succeeded without a roll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
    /// Damage, when it hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Each modifier by itself.
    pub modifiers: Vec<Modifier>,
    /// What the d20 was rolled with, all sources counted.
    pub advantage: Advantage,
    /// Every source of advantage and disadvantage, what applied by itself, and what was refused and why.
    #[schema(value_type = Vec<String>)]
    pub reasons: Vec<Text>,
    /// Every die in the order it fell.
    pub dice: Vec<DieShown>,
    /// Beams, rays and darts, when there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<AttackRoll>,
    /// Rolls of everybody in a contest or a group check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<ParticipantRoll>,
    /// What has to be changed, in order; nothing has been yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<StateChange>,
    /// Seven lines for a narrator; two when there was nothing to roll.
    #[schema(required = false)]
    pub raw: String,
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

/// A number added to a roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RollModifier)]
pub struct Modifier {
    /// Where it comes from: `DEX`, `Prof`, `Bless`.
    #[schema(value_type = String)]
    pub label: Text,
    /// The number.
    pub value: i32,
}

/// A die that fell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DieShown {
    /// Sides.
    pub faces: u32,
    /// What it shows.
    pub value: u32,
    /// Whether it counted.
    pub kept: bool,
    /// What it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Text>,
}

/// Damage as it was rolled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RolledDamage)]
pub struct Damage {
    /// One row for each source.
    pub breakdown: Vec<DamageRow>,
    /// The sum, at least 0, after a save that halves; before the target's resistances.
    pub total_damage: i32,
    /// Whether the dice were doubled.
    pub is_crit: bool,
    /// What is left of it at the target: resistances, vulnerabilities and reactions counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<i32>,
}

/// Damage of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RolledDamageRow)]
pub struct DamageRow {
    /// The source.
    pub label: String,
    /// Its dice, doubled on a critical hit; empty without dice.
    pub dice: String,
    /// What they show, rerolled dice replaced.
    pub rolls: Vec<u32>,
    /// The constant.
    pub flat_bonus: i32,
    /// Dice and constant.
    pub subtotal: i32,
    /// Damage type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub damage_type: Option<Text>,
}

/// One beam, ray or dart of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttackRoll {
    /// The d20 that counted; 0 when it does not miss.
    pub die_result: u32,
    /// Everything added to it.
    pub total_modifier: String,
    /// Their sum.
    pub total: i32,
    /// Whether it hit.
    pub success: bool,
    /// `hit`, `critical hit`, `miss`.
    pub outcome: String,
    /// Its damage, when it hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

/// One creature's roll among others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParticipantRoll {
    /// Id, or name without one.
    pub creature: String,
    /// Name.
    pub name: String,
    /// What it rolled.
    pub check_type: String,
    /// Its modifiers as text.
    pub components: String,
    /// The d20 that counted.
    pub die_result: u32,
    /// Everything added to it.
    pub total_modifier: String,
    /// Their sum.
    pub total: i32,
    /// Whether it had success by itself.
    pub success: bool,
    /// What the d20 was rolled with.
    pub advantage: Advantage,
    /// A result without a roll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
}

/// What cannot be done, and why (tool `mark_impossible`).
#[must_use]
pub fn impossible(reason: &str) -> Outcome {
    let marked = Outcome {
        check_type: "IMPOSSIBLE".to_owned(),
        impossible: true,
        outcome: "impossible".to_owned(),
        notes: reason.trim().to_owned(),
        total_modifier: "+0".to_owned(),
        dc_or_ac: "N/A".to_owned(),
        ..Outcome::default()
    };
    marked.finished()
}

/// What needs no roll, and why (tool `mark_no_check`).
#[must_use]
pub fn no_check(reason: &str) -> Outcome {
    let marked = Outcome {
        check_type: "NONE".to_owned(),
        no_check: true,
        outcome: "no check".to_owned(),
        notes: reason.trim().to_owned(),
        total_modifier: "+0".to_owned(),
        dc_or_ac: "N/A".to_owned(),
        ..Outcome::default()
    };
    marked.finished()
}

impl Outcome {
    /// An outcome that holds what a d20 roll has come to.
    pub(crate) fn of(check_type: String, test: D20Test) -> Self {
        Self {
            check_type,
            components: test.components(),
            die_result: test.die(),
            total_modifier: summary::signed(test.modifier()),
            total: test.total(),
            automatic: test.automatic,
            advantage: test.advantage(),
            modifiers: test.modifiers,
            reasons: test.reasons,
            dice: test.shown,
            effects: test.spent,
            ..Self::default()
        }
    }

    /// An outcome without a d20.
    pub(crate) fn without_roll(check_type: String) -> Self {
        Self { check_type, total_modifier: "+0".to_owned(), dc_or_ac: "N/A".to_owned(), ..Self::default() }
    }

    /// Writes the summary, when everything else stands.
    pub(crate) fn finished(mut self) -> Self {
        self.raw = summary::raw(&self);
        self
    }
}
