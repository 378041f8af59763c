//! Whether an attack with a weapon or a spell hits, and what its damage does to the target.

use super::{Circumstances, Damage, DamageArgs, StateChange, d20::D20Test, harm, outcome::Text};
use crate::{
    sheet::{Creature, Vitals},
    srd::same,
};

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
pub(crate) fn judge(test: &D20Test, ac: i32, critical_from: u32, helpless: bool) -> Verdict {
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
pub(crate) fn note(test: &D20Test, hit: Verdict, target: &Creature, ac: i32) -> String {
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
    damage: &mut Damage,
    blow: DamageArgs,
    reasons: &mut Vec<Text>,
    changes: &mut Vec<StateChange>,
) {
    damage.taken = Some(harm::settle(target, vitals, &blow, reasons, changes));
}
