//! Healing (SRD 5.1, "Healing").

use serde::{Deserialize, Serialize};

use super::{
    DamageRow, Outcome, RuleError, StateChange,
    error::{Stop, settle},
    rows::{self, Row},
};
use crate::{
    dice::Dice,
    sheet::{Creature, DeathSaves, Life},
    srd::{DamageDice, same},
};

/// Healing by a number or by dice (tool `apply_healing`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealingArgs {
    /// Hit points; below 0 counts as 0.
    pub amount: Option<i32>,
    /// A sum of dice and a number.
    pub formula: Option<String>,
}

/// Heals a creature up to its hit point maximum. A creature at 0 hit points wakes up, and its death saving throws are
/// reset.
///
/// # Errors
/// If dice run out, or unless exactly one of a number and a sum of dice is given.
pub fn apply_healing(target: &Creature, args: &HealingArgs, dice: &mut dyn Dice) -> Result<Outcome, RuleError> {
    settle(healing(target, args, dice))
}

fn healing(target: &Creature, args: &HealingArgs, dice: &mut dyn Dice) -> Result<Outcome, Stop> {
    let wrong = |argument, message: &str| Stop::Error(RuleError::Argument { argument, message: message.to_owned() });
    let row = match (args.amount, args.formula.as_deref()) {
        (Some(amount), None) => Row::flat("Healing", amount, "".into()),
        (None, Some(formula)) => {
            let dice = DamageDice::parse(formula);
            let dice = dice.ok_or_else(|| wrong("formula", "must be a sum of dice such as 2d4+2"))?;
            Row::of("Healing", dice, "".into())
        }
        _ => return Err(wrong("amount", "give either `amount` or `formula`")),
    };
    alive(target)?;
    let mut outcome = Outcome::without_roll("Healing".to_owned(), &[target]);
    heal(&mut outcome, target, &[row], dice)?;
    Ok(outcome.finished())
}

/// Checks that the creature is not dead.
pub(crate) fn alive(target: &Creature) -> Result<(), Stop> {
    if target.life() == Life::Dead {
        return Err(Stop::Impossible(format!("{} is dead", target.name)));
    }
    Ok(())
}

/// Rolls healing and adds the changes.
pub(crate) fn heal(outcome: &mut Outcome, target: &Creature, rows: &[Row], dice: &mut dyn Dice) -> Result<(), Stop> {
    let rolled = rows::roll(rows, false, dice, &mut outcome.dice)?;
    let amount = rolled.total_damage;
    let gained = regain(target, amount, &mut outcome.effects);
    let parts = rolled.breakdown.iter().map(row_text).collect::<Vec<_>>().join(", ");
    outcome.reasons.push(parts.into());
    outcome.success = true;
    outcome.total = amount;
    outcome.outcome = format!("{amount} healing");
    let hp = target.hp.max(0).saturating_add(gained);
    let max = target.max_hp_now();
    outcome.notes = format!("{} regains {gained} hit points and has {hp} of {max}.", target.name);
    Ok(())
}

fn row_text(row: &DamageRow) -> String {
    if row.dice.is_empty() {
        return format!("{}: {}", row.label, row.flat_bonus);
    }
    format!("{}: {} {:?} {:+}", row.label, row.dice, row.rolls, row.flat_bonus)
}

/// Adds the changes for regained hit points. Returns how many were regained.
pub(crate) fn regain(target: &Creature, amount: i32, changes: &mut Vec<StateChange>) -> i32 {
    let creature = || target.key().to_owned();
    let before = target.hp.max(0);
    let room = target.max_hp_now().saturating_sub(before).max(0);
    let gained = amount.clamp(0, room);
    let hp = before.saturating_add(gained);
    changes.push(StateChange::Heal { creature: creature(), amount: gained, hp });
    if gained > 0 && before == 0 {
        if target.death_saves != DeathSaves::default() {
            changes.push(StateChange::DeathSaves { creature: creature(), successes: 0, failures: 0 });
        }
        if target.conditions.iter().any(|c| same(&c.name, "unconscious")) {
            let name = "unconscious".to_owned();
            changes.push(StateChange::RemoveCondition { creature: creature(), name });
        }
    }
    gained
}
