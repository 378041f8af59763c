//! Attacks with weapons, and the entry to those with spells (SRD 5.1, "Making an Attack").
//!
//! - `arm`: the weapon's numbers from sheet and tables; `choose`: which weapon a request means.
//! - `circumstances`: what is possible, and what gives advantage or disadvantage.
//! - `sources`: damage in addition to the weapon's own; `weapon`: the roll itself.

mod arm;
mod choose;
mod circumstances;
mod custom;
mod sources;
mod weapon;

use serde::{Deserialize, Serialize};

use super::{Circumstances, Outcome, RuleError, StateChange, error::settle, outcome::Text, spell};
use crate::{
    dice::Dice,
    sheet::{Creature, Vitals},
    srd::{Found, same},
};

pub(crate) use circumstances::{Shape, able, helpless, lean};
pub(crate) use custom::custom_rows;

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

/// Resolves an attack with a weapon or a spell against one target.
///
/// Dice: d20s of all attacks, bonus dice, then damage dice in breakdown order for those that hit.
///
/// # Errors
/// If dice run out.
pub fn resolve_attack(
    actor: &Creature,
    target: &Creature,
    args: &AttackArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    let spell = args.spell_name.as_deref().filter(|s| !s.trim().is_empty());
    let spell = spell.or_else(|| args.weapon.as_deref().filter(|_| args.is_spell_attack));
    settle(match spell {
        Some(name) => spell::cast(actor, target, name, args, circumstances, dice),
        None => match choose::choose(actor, args.weapon.as_deref()) {
            Err(_) if names_a_spell(actor, args) => {
                spell::cast(actor, target, args.weapon.as_deref().unwrap_or_default(), args, circumstances, dice)
            }
            Err(stop) => Err(stop),
            Ok(choice) => weapon::attack(actor, target, &choice, args, circumstances, dice),
        },
    })
}

/// Whether the `weapon` is actually a spell that the actor knows.
fn names_a_spell(actor: &Creature, args: &AttackArgs) -> bool {
    args.weapon.as_deref().is_some_and(|name| {
        actor.spells.iter().any(|s| same(s.name(), name))
            || (actor.is_npc && matches!(crate::srd::spell(name), Found::One(rule) if same(rule.name, name)))
    })
}

/// The result of a roll against an armor class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Miss,
    Hit,
    Critical,
}

impl Verdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Miss => "miss",
            Self::Hit => "hit",
            Self::Critical => "critical hit",
        }
    }
}

/// Judges a roll. 1 misses; 20 is a critical hit. A lower number in the critical range is critical if it hits, and so
/// is every hit on an adjacent helpless target.
pub(crate) fn judge(test: &super::d20::D20Test, ac: i32, critical_from: u32, helpless: bool) -> Verdict {
    let hits = match test.die() {
        _ if test.automatic.is_some() => test.reaches(ac),
        1 => false,
        20 => true,
        _ => test.reaches(ac),
    };
    let critical = test.die() == 20 || test.die() >= critical_from && critical_from > 1 || helpless;
    match (hits, critical) {
        (false, _) => Verdict::Miss,
        (true, false) => Verdict::Hit,
        (true, true) => Verdict::Critical,
    }
}

/// A sentence about a roll.
pub(crate) fn note(test: &super::d20::D20Test, hit: Verdict, target: &Creature, ac: i32) -> String {
    let name = if target.name.is_empty() { "the target" } else { target.name.as_str() };
    match (hit, test.die()) {
        (Verdict::Miss, 1) => format!("Natural 1: automatic miss against {name}."),
        (Verdict::Miss, _) => format!("Misses {name} (AC {ac})."),
        (Verdict::Hit, _) => format!("Hits {name} (AC {ac})."),
        (Verdict::Critical, 20) => format!("Natural 20: critical hit on {name} (AC {ac})."),
        (Verdict::Critical, _) => format!("Critical hit on {name} (AC {ac})."),
    }
}

/// Halves the damage of one attack if the target uses Uncanny Dodge, or adds the reason why it cannot.
pub(crate) fn uncanny_dodge(target: &Creature, circumstances: &Circumstances, reasons: &mut Vec<Text>) -> bool {
    let context = &circumstances.context;
    if !context.reactions.iter().any(|r| same(r, "Uncanny Dodge")) {
        return false;
    }
    let refused = if !target.has_feature("Uncanny Dodge") {
        "it is not on the target's sheet"
    } else if context.attacker_unseen {
        "the target does not see the attacker"
    } else if target.is_incapacitated() {
        "the target cannot react"
    } else {
        reasons.push("Uncanny Dodge: half damage".into());
        return true;
    };
    reasons.push(format!("refused: Uncanny Dodge, {refused}").into());
    false
}

/// Applies damage to the target.
pub(crate) fn land(
    target: &Creature,
    vitals: &mut Vitals,
    damage: &mut super::Damage,
    blow: super::DamageArgs,
    reasons: &mut Vec<Text>,
    changes: &mut Vec<StateChange>,
) {
    damage.taken = Some(super::harm::settle(target, vitals, &blow, reasons, changes));
}
