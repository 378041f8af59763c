//! Short and long rests (SRD 5.1, "Resting").

use serde::{Deserialize, Serialize};

use super::{
    Outcome, RuleError, StateChange,
    error::{Stop, settle},
    heal::regain,
    rows::{self, Row},
};
use crate::{
    dice::Dice,
    sheet::{Condition, Creature, DeathSaves, HitDice, Life},
    srd::{Ability, Class, Slots, holds, same},
};

/// The kind of rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestType {
    /// An hour or more.
    #[default]
    Short,
    /// Eight hours or more. The caller must ensure that there is only one per day.
    Long,
}

/// A rest (tool `take_rest`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestArgs {
    /// Short or long.
    #[serde(rename = "type")]
    pub rest: RestType,
    /// Hit dice to spend during a short rest.
    pub hit_dice: Option<i32>,
    /// Levels of the slots to recover during a short rest with Arcane or Natural Recovery.
    pub recover_slots: Vec<i32>,
    /// Whether the creature has food and drink. Without them exhaustion does not improve.
    pub food: bool,
}

impl Default for RestArgs {
    fn default() -> Self {
        Self { rest: RestType::Short, hit_dice: None, recover_slots: Vec::new(), food: true }
    }
}

/// Resolves a rest. In a short rest the creature spends hit dice, each with the Constitution modifier. A long rest
/// restores everything, half of the hit dice, and removes a level of exhaustion.
///
/// # Errors
/// If dice run out.
pub fn take_rest(actor: &Creature, args: &RestArgs, dice: &mut dyn Dice) -> Result<Outcome, RuleError> {
    settle(match args.rest {
        RestType::Short => short(actor, args, dice),
        RestType::Long => long(actor, args),
    })
}

fn short(actor: &Creature, args: &RestArgs, dice: &mut dyn Dice) -> Result<Outcome, Stop> {
    if actor.life() == Life::Dead {
        return Err(Stop::Impossible(format!("{} is dead", actor.name)));
    }
    let spend = args.hit_dice.unwrap_or(0).max(0);
    let mut outcome = Outcome::without_roll("Short Rest".to_owned(), &[actor]);
    let recovered = recovered(actor, &args.recover_slots)?;
    let mut gained = 0;
    if spend > 0 {
        gained = spend_hit_dice(&mut outcome, actor, spend, dice)?;
    }
    restore_resources(actor, false, &mut outcome.effects);
    if Class::of_profession(&actor.profession)
        .all(|(c, _)| c.rule().slots != Slots::Full && c.rule().slots != Slots::Half)
        && actor.class_level(Class::Warlock) > 0
    {
        restore_slots(actor, &mut outcome.effects);
    }
    outcome.effects.extend(recovered);
    fade(actor, 600, &mut outcome.effects);
    outcome.success = true;
    outcome.total = gained;
    outcome.outcome = format!("{gained} hit points");
    let dice = if spend == 1 { "die" } else { "dice" };
    let left = actor.hit_dice.unwrap_or_default().remaining;
    outcome.notes = match spend {
        0 if left > 0 && actor.hp < actor.max_hp_now() && actor.life() == Life::Alive => {
            format!("{} takes a short rest without spending hit dice, and regains no hit points.", actor.name)
        }
        0 => format!("{} takes a short rest.", actor.name),
        _ => format!("{} rests and regains {gained} hit points with {spend} hit {dice}.", actor.name),
    };
    Ok(outcome.finished())
}

/// Rolls hit dice, each with the Constitution modifier and none below 0.
fn spend_hit_dice(outcome: &mut Outcome, actor: &Creature, spend: i32, dice: &mut dyn Dice) -> Result<i32, Stop> {
    let HitDice { die, remaining, .. } = actor.hit_dice.unwrap_or_default();
    if spend > remaining {
        return Err(Stop::Impossible(format!("{} has {} hit dice left, not {spend}", actor.name, remaining.max(0))));
    }
    if actor.life() != Life::Alive {
        return Err(Stop::Impossible(format!("{} is at 0 hit points and cannot spend hit dice", actor.name)));
    }
    let constitution = actor.modifier(Ability::Constitution);
    let faces = u32::try_from(die).unwrap_or(1).clamp(1, crate::srd::FACES_MAX);
    let mut sum = 0_i32;
    for _ in 0..spend.min(i32::try_from(crate::srd::DICE_MAX).unwrap_or(i32::MAX)) {
        let mut row = Row::dice("Hit Die", 1, faces, "".into());
        row.flat = constitution;
        let rolled = rows::roll(std::slice::from_ref(&row), false, dice, &mut outcome.dice)?;
        sum = sum.saturating_add(rolled.total_damage);
    }
    let gained = regain(actor, sum, &mut outcome.effects);
    outcome.effects.push(StateChange::SetHitDice { creature: actor.key().to_owned(), remaining: remaining - spend });
    outcome.reasons.push(format!("each hit die adds CON {constitution:+}").into());
    Ok(gained)
}

/// Arcane and Natural Recovery: once a day, slots with a total of half the level, rounded up, none above the 5th level.
fn recovered(actor: &Creature, levels: &[i32]) -> Result<Vec<StateChange>, Stop> {
    if levels.is_empty() {
        return Ok(Vec::new());
    }
    let known = [("Arcane Recovery", Class::Wizard), ("Natural Recovery", Class::Druid)];
    let Some((feature, class)) = known.into_iter().find(|(name, _)| actor.has_feature(name)) else {
        return Err(Stop::Impossible(format!("{} has no feature that recovers slots", actor.name)));
    };
    let creature = || actor.key().to_owned();
    let pool = actor.resources.iter().find(|r| same(&r.name, feature));
    if actor.turn_flags.contains_key(feature) || pool.is_some_and(|p| p.remaining <= 0) {
        return Err(Stop::Impossible(format!("{feature} has already been used since the last long rest")));
    }
    let allowed = (actor.feature_level(class).clamp(1, 20) + 1) / 2;
    let sum = levels.iter().fold(0_i32, |sum, level| sum.saturating_add(*level));
    if sum > allowed || levels.iter().any(|l| !(1..=5).contains(l)) {
        return Err(Stop::Impossible(format!(
            "{feature} recovers slots with a total of {allowed} levels, none above the 5th"
        )));
    }
    let mut changes = vec![match pool {
        Some(pool) => StateChange::SpendResource { creature: creature(), name: pool.name.clone(), amount: 1 },
        None => StateChange::SetFlag { creature: creature(), flag: feature.to_owned(), turn_key: "rest".to_owned() },
    }];
    for level in 1..=5 {
        let wanted = levels.iter().filter(|l| **l == level).count();
        let Some(slot) = actor.spell_slots.get(&level.to_string()).filter(|_| wanted > 0) else { continue };
        let remaining = slot.remaining.saturating_add(i32::try_from(wanted).unwrap_or(0)).min(slot.max);
        changes.push(StateChange::SetSlot { creature: creature(), level, remaining });
    }
    Ok(changes)
}

fn long(actor: &Creature, args: &RestArgs) -> Result<Outcome, Stop> {
    if actor.life() != Life::Alive {
        return Err(Stop::Impossible(format!(
            "a long rest requires at least 1 hit point, and {} has none",
            actor.name
        )));
    }
    let mut outcome = Outcome::without_roll("Long Rest".to_owned(), &[actor]);
    let creature = || actor.key().to_owned();
    let changes = &mut outcome.effects;
    let exhaustion = actor.exhaustion();
    if exhaustion > 0 && args.food {
        let condition =
            Condition { name: "exhaustion".to_owned(), level: Some(exhaustion - 1), ..Condition::default() };
        changes.push(StateChange::AddCondition { creature: creature(), condition });
    }
    // The maximum after the rest, because losing a level of exhaustion may have doubled it.
    let max = if exhaustion - i32::from(args.food) >= 4 { actor.max_hp / 2 } else { actor.max_hp };
    let gained = max.saturating_sub(actor.hp).max(0);
    changes.push(StateChange::Heal { creature: creature(), amount: gained, hp: actor.hp.saturating_add(gained) });
    if actor.temp_hp != 0 {
        changes.push(StateChange::TempHp { creature: creature(), temp_hp: 0 });
    }
    if let Some(HitDice { max, remaining, .. }) = actor.hit_dice {
        let remaining = remaining.saturating_add((max / 2).max(1)).min(max);
        changes.push(StateChange::SetHitDice { creature: creature(), remaining });
    }
    restore_slots(actor, changes);
    restore_resources(actor, true, changes);
    if actor.death_saves != DeathSaves::default() {
        changes.push(StateChange::DeathSaves { creature: creature(), successes: 0, failures: 0 });
    }
    if !actor.turn_flags.is_empty() {
        changes.push(StateChange::ClearFlags { creature: creature() });
    }
    fade(actor, 4_800, changes);
    outcome.success = true;
    outcome.total = gained;
    outcome.outcome = format!("{gained} hit points");
    outcome.notes = format!("{} sleeps and regains {gained} hit points, slots and resources.", actor.name);
    Ok(outcome.finished())
}

fn restore_slots(actor: &Creature, changes: &mut Vec<StateChange>) {
    for (level, slot) in &actor.spell_slots {
        if let Ok(level) = level.parse::<i32>()
            && slot.remaining != slot.max
        {
            changes.push(StateChange::SetSlot { creature: actor.key().to_owned(), level, remaining: slot.max });
        }
    }
}

fn restore_resources(actor: &Creature, all: bool, changes: &mut Vec<StateChange>) {
    for pool in actor.resources.iter().filter(|r| r.remaining != r.max && (all || after_an_hour(actor, &r.name))) {
        let (creature, name) = (actor.key().to_owned(), pool.name.clone());
        changes.push(StateChange::SetResource { creature, name, remaining: pool.max });
    }
}

/// Whether a short rest restores a resource.
fn after_an_hour(actor: &Creature, name: &str) -> bool {
    if holds(name, "Bardic Inspiration") {
        return actor.feature_level(Class::Bard) >= 5;
    }
    let ki = name.split(|c: char| !c.is_alphanumeric()).any(|word| same(word, "ki"));
    ki || ["Second Wind", "Action Surge", "Channel Divinity", "Wild Shape", "Pact"]
        .iter()
        .any(|known| holds(name, known))
}

/// Ends conditions and effects that last no longer than the rest (a round is six seconds), or until a rest. Whoever can gets up.
fn fade(actor: &Creature, rounds: i32, changes: &mut Vec<StateChange>) {
    let over = |left: Option<i32>| left.is_some_and(|left| left <= rounds);
    for effect in actor.effects.iter().filter(|e| over(e.rounds_remaining)) {
        changes.push(StateChange::RemoveEffect { creature: actor.key().to_owned(), name: effect.name.clone() });
    }
    // Whoever can has stood up meanwhile.
    let stood_up = |condition: &Condition| condition.name == "prone" && actor.life() == Life::Alive;
    let ended = |c: &&Condition| c.until_rest || over(c.rounds_remaining) || stood_up(c);
    for condition in actor.conditions.iter().filter(ended) {
        changes.push(StateChange::RemoveCondition { creature: actor.key().to_owned(), name: condition.name.clone() });
    }
}
