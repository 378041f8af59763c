//! Group checks: everybody rolls, and at least half must succeed (SRD 5.1, "Group Checks").

use serde::{Deserialize, Serialize};

use super::{
    CheckKind, Circumstances, Outcome, RuleError,
    check::{checked, prepare},
    contest::participant,
    error::{Stop, settle},
};
use crate::{dice::Dice, sheet::Creature};

/// A group check (tool `resolve_group_check`). The participants are an argument of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupCheckArgs {
    /// What everybody rolls.
    #[serde(flatten)]
    pub kind: CheckKind,
    /// The DC.
    pub dc: i32,
}

/// Resolves a group check. `total` is the number of successes. Each roll is in `participants`.
///
/// Dice: everybody's d20s in order, then everybody's bonus dice.
///
/// # Errors
/// If dice run out.
pub fn resolve_group_check(
    participants: &[&Creature],
    args: &GroupCheckArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(group(participants, args, circumstances, dice))
}

fn group(
    creatures: &[&Creature],
    args: &GroupCheckArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let what = checked(args.kind.skill.as_deref(), args.kind.ability.as_deref())?;
    if creatures.is_empty() {
        return Err(Stop::Impossible("nobody takes part".to_owned()));
    }
    let mut tests: Vec<_> = creatures.iter().map(|c| prepare(c, what, circumstances)).collect();
    let mut outcome = Outcome::without_roll(format!("Group {}", what.title()), creatures);
    for (test, creature) in tests.iter_mut().zip(creatures) {
        test.roll(dice)?;
        outcome.dice_of(creature, std::mem::take(&mut test.shown));
    }
    for (test, creature) in tests.iter_mut().zip(creatures) {
        test.roll_bonus(dice)?;
        outcome.dice_of(creature, std::mem::take(&mut test.shown));
    }
    let mut succeeded = 0;
    for (creature, mut test) in creatures.iter().zip(tests) {
        let success = test.reaches(args.dc);
        succeeded += usize::from(success);
        outcome.participants.push(participant(creature, &test, what, success));
        outcome.effects.append(&mut test.spent);
        outcome.reasons.extend(test.reasons.iter().map(|r| format!("{}: {r}", creature.name).into()));
    }
    outcome.success = succeeded * 2 >= creatures.len();
    outcome.total = i32::try_from(succeeded).unwrap_or(i32::MAX);
    outcome.dc_or_ac = args.dc.to_string();
    outcome.outcome = if outcome.success { "success" } else { "failure" }.to_owned();
    outcome.notes = format!("{succeeded} of {} succeed against DC {}.", creatures.len(), args.dc);
    Ok(outcome.finished())
}
