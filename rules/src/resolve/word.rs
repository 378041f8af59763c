//! What a game master's word does to a creature outside of a fight.

use super::{
    DamageArgs, DamagePart, HealingArgs, Outcome, RuleError, StateChange, apply_damage, apply_healing, impossible,
};
use crate::{
    dice::Given,
    sheet::{Condition, Creature},
    srd::{condition, same},
};

/// The most hit points of one word.
const AMOUNT_MAX: i32 = 1_000_000;

/// A game master's word about a creature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// It takes damage that nothing resists, in hit points.
    Damage(i32),
    /// It regains hit points.
    Heal(i32),
    /// It has temporary hit points. They do not add up; the higher value counts (SRD 5.1, "Temporary Hit Points").
    TempHp(i32),
    /// One of the 15 conditions begins; exhaustion rises by a level (SRD 5.1, "Exhaustion").
    AddCondition(&'a str),
    /// A condition ends; exhaustion falls by a level.
    RemoveCondition(&'a str),
}

/// Decides what a word does. Nothing is rolled.
///
/// # Errors
/// [`RuleError::Argument`] for an amount out of range and for a condition that there is not.
pub fn by_word(target: &Creature, word: Word<'_>) -> Result<Outcome, RuleError> {
    match word {
        Word::Damage(amount) => {
            let parts = vec![DamagePart { amount: within(amount)?, damage_type: String::new() }];
            apply_damage(target, &DamageArgs { parts, ..DamageArgs::default() })
        }
        Word::Heal(amount) => {
            let args = HealingArgs { amount: Some(within(amount)?), formula: None };
            apply_healing(target, &args, &mut Given::new(&[]))
        }
        Word::TempHp(amount) => {
            let temp_hp = within(amount)?.max(target.temp_hp);
            let notes = format!("{} has {temp_hp} temporary hit points.", target.name);
            Ok(changed(target, StateChange::TempHp { creature: target.key().to_owned(), temp_hp }, notes))
        }
        Word::AddCondition(name) => {
            let rule = condition(name).ok_or_else(|| wrong("condition", "must be one of the 15 conditions"))?;
            if target.is_immune_to_condition(rule.name) {
                return Ok(impossible(&format!("{} is immune to the condition {}", target.name, rule.name)));
            }
            let level = (rule.name == "exhaustion").then(|| target.exhaustion().saturating_add(1).min(6));
            let condition = Condition { name: rule.name.to_owned(), level, ..Condition::default() };
            let notes = begun(&target.name, &condition);
            Ok(changed(target, StateChange::AddCondition { creature: target.key().to_owned(), condition }, notes))
        }
        Word::RemoveCondition(name) => {
            let Some(known) = target.conditions.iter().find(|known| same(&known.name, name)) else {
                return Ok(impossible(&format!("{} has no condition {name}", target.name)));
            };
            let creature = target.key().to_owned();
            let left = target.exhaustion().saturating_sub(1);
            if same(&known.name, "exhaustion") && left > 0 {
                let condition = Condition { level: Some(left), ..known.clone() };
                let notes = begun(&target.name, &condition);
                return Ok(changed(target, StateChange::AddCondition { creature, condition }, notes));
            }
            let notes = match same(&known.name, "exhaustion") {
                true => format!("{} has no exhaustion any more.", target.name),
                false => format!("{} is no longer {}.", target.name, known.name),
            };
            Ok(changed(target, StateChange::RemoveCondition { creature, name: known.name.clone() }, notes))
        }
    }
}

/// What somebody has from now on, in a sentence.
fn begun(name: &str, condition: &Condition) -> String {
    match condition.level {
        Some(level) => format!("{name} has exhaustion, level {level}."),
        None => format!("{name} is {}.", condition.name),
    }
}

fn changed(target: &Creature, change: StateChange, notes: String) -> Outcome {
    let outcome = Outcome::without_roll("Game master".to_owned(), &[target]);
    Outcome { success: true, outcome: "done".to_owned(), notes, effects: vec![change], ..outcome }.finished()
}

fn within(amount: i32) -> Result<i32, RuleError> {
    if (0..=AMOUNT_MAX).contains(&amount) { Ok(amount) } else { Err(wrong("amount", "must be 0 to 1000000")) }
}

fn wrong(argument: &'static str, message: &str) -> RuleError {
    RuleError::Argument { argument, message: message.to_owned() }
}
