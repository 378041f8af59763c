//! Concentration, death saving throws and falls.

use super::{
    Circumstances, DamageArgs, Outcome, RuleError, StateChange,
    d20::D20Test,
    harm::{self, concentration_dc},
    heal, impossible, no_check,
    rows::{self, Row},
    save,
};
use crate::{
    dice::Dice,
    sheet::{Creature, Life},
    srd::Ability,
};

/// Resolves the Constitution saving throw that a concentrating creature makes after damage from one source.
///
/// # Errors
/// If dice run out.
pub fn resolve_concentration(
    actor: &Creature,
    damage: i32,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    let Some(on) = &actor.concentration else {
        return Ok(no_check(&format!("{} is not concentrating", actor.name)));
    };
    let end = || StateChange::EndConcentration { creature: actor.key().to_owned(), spell: on.spell.clone() };
    let dc = concentration_dc(damage);
    let mut test = save::prepare(actor, Ability::Constitution, circumstances, "concentration", 0);
    if actor.is_incapacitated() || actor.life() == Life::Dead {
        test.settle(super::Automatic::Failure, "automatic failure: a creature that cannot act cannot concentrate");
    }
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let success = test.reaches(dc);
    let mut outcome = Outcome::of("Constitution Saving Throw".to_owned(), test);
    outcome.dc_or_ac = dc.to_string();
    outcome.success = success;
    if success {
        outcome.outcome = "success".to_owned();
        outcome.notes = format!("{} keeps concentrating on {} (DC {dc}).", actor.name, on.spell);
    } else {
        outcome.outcome = "failure".to_owned();
        outcome.notes = format!("{} loses concentration on {} (DC {dc}).", actor.name, on.spell);
        outcome.effects.push(end());
    }
    Ok(outcome.finished())
}

/// Resolves a death saving throw. 10 or more is a success. Three successes make the creature stable; three failures
/// kill it. A 1 counts as two failures, and a 20 restores 1 hit point (SRD 5.1, "Death Saving Throws").
///
/// # Errors
/// If dice run out; [`RuleError::NotDying`] if the creature is not at 0 hit points, or is stable or dead.
pub fn resolve_death_save(
    actor: &Creature,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    if actor.life() != Life::Dying {
        return Err(RuleError::NotDying);
    }
    let mut test = D20Test::by(actor);
    save::aura(&mut test, actor, circumstances);
    save::exhaustion(&mut test, actor);
    for rule in actor.effect_rules() {
        save::save_die(&mut test, actor, rule);
    }
    test.lean(circumstances.advantage, || "as requested".into());
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let success = test.die() == 20 || (test.die() != 1 && test.reaches(10));
    let mut outcome = Outcome::of("Death Saving Throw".to_owned(), test);
    outcome.dc_or_ac = "10".to_owned();
    outcome.success = success;
    let name = &actor.name;
    let creature = || actor.key().to_owned();
    let (mut successes, mut failures) = (actor.death_saves.successes.max(0), actor.death_saves.failures.max(0));
    if outcome.die_result == 20 {
        heal::regain(actor, 1, &mut outcome.effects);
        outcome.outcome = "regains 1 hit point".to_owned();
        outcome.notes = format!("Natural 20: {name} regains 1 hit point.");
        return Ok(outcome.finished());
    }
    match (success, outcome.die_result) {
        (true, _) => successes = (successes + 1).min(3),
        (false, 1) => failures = failures.saturating_add(2).min(3),
        (false, _) => failures = failures.saturating_add(1).min(3),
    }
    let tally = format!("{successes} of 3 successes, {failures} of 3 failures");
    (outcome.outcome, outcome.notes) = if failures >= 3 {
        outcome.effects.push(StateChange::Dies { creature: creature() });
        ("dies".to_owned(), format!("{name} dies: {tally}."))
    } else {
        outcome.effects.push(StateChange::DeathSaves { creature: creature(), successes, failures });
        match (successes >= 3, success) {
            (true, _) => ("stable".to_owned(), format!("{name} is stable: {tally}.")),
            (false, true) => ("success".to_owned(), format!("Success: {tally}.")),
            (false, false) if outcome.die_result == 1 => {
                ("failure".to_owned(), format!("Natural 1, two failures: {tally}."))
            }
            (false, false) => ("failure".to_owned(), format!("Failure: {tally}.")),
        }
    };
    Ok(outcome.finished())
}

/// Resolves a fall: 1d6 bludgeoning damage for each 10 feet, at most 20d6. A creature that takes damage lands prone
/// (SRD 5.1, "Falling").
///
/// # Errors
/// If dice run out.
pub fn resolve_fall(
    actor: &Creature,
    distance_ft: i32,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    if distance_ft < 0 {
        return Ok(impossible("the height of a fall cannot be negative"));
    }
    let count = u32::try_from(distance_ft / 10).unwrap_or(0).min(20);
    if count == 0 {
        return Ok(no_check(&format!("a fall of {distance_ft} feet does no harm")));
    }
    let mut outcome = Outcome::without_roll("Fall".to_owned(), &[actor]);
    let rows = [Row::dice("Fall", count, 6, "bludgeoning".into())];
    let mut damage = rows::roll(&rows, false, dice, &mut outcome.dice)?;
    let blow = DamageArgs {
        parts: rows::parts(&damage.breakdown),
        magical: false,
        underwater: circumstances.context.underwater,
        ..DamageArgs::default()
    };
    let mut vitals = actor.vitals();
    let taken = harm::settle(actor, &mut vitals, &blow, &mut outcome.reasons, &mut outcome.effects);
    damage.taken = Some(taken);
    outcome.damage = Some(damage);
    if taken > 0 && !vitals.dead {
        harm::lay_prone(actor, &mut outcome.effects);
    }
    outcome.success = taken == 0;
    outcome.outcome = format!("{taken} damage");
    let standing = harm::standing(actor, &vitals);
    outcome.notes = format!("{} falls {distance_ft} feet and takes {taken} damage. {standing}", actor.name);
    Ok(outcome.finished())
}
