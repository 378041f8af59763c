//! Damage, healing and conditions from any source, such as a game master's decision, a trap or a custom spell.

use super::Work;
use crate::{
    dice::Dice,
    encounter::{Action, Duration, Event, Lasting, Participant, Refusal, Until, arguments::find_condition, limits},
    resolve::{DamageArgs, DamagePart, HealingArgs, StateChange, apply_damage, apply_healing},
    sheet::{ActiveEffect, Condition},
    srd::{DAMAGE_TYPES, damage_type, same},
};

impl Work {
    /// Applies the given damage, with resistances.
    pub(super) fn damage(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let target = self.target(action)?;
        let by = self.source(action)?;
        let args = DamageArgs {
            parts: parts(action)?,
            magical: action.magical,
            critical: action.critical,
            knock_out: action.circumstances.context.knock_out,
            underwater: action.circumstances.context.underwater,
            ..DamageArgs::default()
        };
        let outcome = apply_damage(&target.creature, &args)?;
        let effects = outcome.effects.clone();
        self.tell(outcome);
        self.land(by.as_ref().map(|p| p.id.as_str()), &effects, dice)
    }

    /// Heals by a number or by dice.
    pub(super) fn heal(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?;
        let amount = action.amount.map(|a| within("amount", a)).transpose()?;
        let outcome = apply_healing(&target.creature, &HealingArgs { amount, formula: action.formula.clone() }, dice)?;
        let effects = outcome.effects.clone();
        self.tell(outcome);
        self.land(by.as_ref().map(|p| p.id.as_str()), &effects, dice)
    }

    /// Sets temporary hit points. They do not add up; the higher value counts (SRD 5.1, "Temporary Hit Points").
    pub(super) fn temp_hp(&mut self, action: &Action) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?.map(|p| p.id);
        let amount = within("amount", action.amount.ok_or_else(|| Refusal::missing("amount", action.action))?)?;
        let temp_hp = if action.overridden { amount } else { amount.max(target.creature.temp_hp) };
        self.push(Event::Changed { by, change: StateChange::TempHp { creature: target.id, temp_hp } });
        Ok(())
    }

    /// Adds a condition.
    pub(super) fn add_condition(&mut self, action: &Action) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?;
        let name = action.condition.as_deref().ok_or_else(|| Refusal::missing("condition", action.action))?;
        let name = find_condition("condition", name)?;
        let (until, rounds) = until(action, by.as_ref())?;
        let level = level(action, name, &target)?;
        if target.creature.is_immune_to_condition(name) {
            self.cannot(&format!("{} cannot be {name}", target.creature.name));
            return Ok(());
        }
        if let (Until::Concentration { by }, Some(caster)) = (&until, &by)
            && caster.creature.concentration.is_none()
        {
            let spell = action.source.clone().unwrap_or_else(|| name.to_owned());
            let change = StateChange::StartConcentration { creature: by.clone(), spell };
            self.push(Event::Changed { by: Some(by.clone()), change });
        }
        let by = by.map(|p| p.id);
        let source = action.source.clone().or_else(|| by.clone());
        let until_rest = until == Until::Rest;
        let condition = Condition { name: name.to_owned(), source, rounds_remaining: rounds, level, until_rest };
        let creature = target.id.clone();
        self.push(Event::Changed { by, change: StateChange::AddCondition { creature, condition } });
        let description = action.description.clone();
        let lasting = Lasting { condition: name.to_owned(), until, description };
        self.push(Event::Lasts { participant: target.id.clone(), lasting });
        self.follow(&target.id);
        Ok(())
    }

    /// Removes a condition, or levels of exhaustion.
    pub(super) fn remove_condition(&mut self, action: &Action) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?.map(|p| p.id);
        let name = action.condition.as_deref().ok_or_else(|| Refusal::missing("condition", action.action))?;
        let name = find_condition("condition", name)?;
        let Some(known) = target.creature.conditions.iter().find(|c| same(&c.name, name)) else {
            self.cannot(&format!("{} is not {name}", target.creature.name));
            return Ok(());
        };
        let creature = target.id.clone();
        let left = action.level.map(|levels| target.creature.exhaustion().saturating_sub(levels.max(0)));
        let change = match left.filter(|left| *left > 0 && name == "exhaustion") {
            Some(left) => {
                let condition = Condition { level: Some(left), ..known.clone() };
                StateChange::AddCondition { creature, condition }
            }
            None => StateChange::RemoveCondition { creature, name: known.name.clone() },
        };
        self.push(Event::Changed { by, change });
        Ok(())
    }

    /// Adds an effect. Effects from the tables change rolls; others are only stored and shown.
    pub(super) fn add_effect(&mut self, action: &Action) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?.map(|p| p.id);
        let name = effect_name(action)?;
        let rounds_remaining = rounds(action)?;
        let source = action.source.clone().or_else(|| by.clone());
        let effect = ActiveEffect { name: name.to_owned(), source, rounds_remaining };
        self.push(Event::Changed { by, change: StateChange::AddEffect { creature: target.id, effect } });
        Ok(())
    }

    /// Removes an effect.
    pub(super) fn remove_effect(&mut self, action: &Action) -> Result<(), Refusal> {
        let target = self.target_or_self(action)?;
        let by = self.source(action)?.map(|p| p.id);
        let name = effect_name(action)?;
        let Some(known) = target.creature.effects.iter().find(|e| same(&e.name, name)) else {
            self.cannot(&format!("{} has no effect {name}", target.creature.name));
            return Ok(());
        };
        let change = StateChange::RemoveEffect { creature: target.id.clone(), name: known.name.clone() };
        self.push(Event::Changed { by, change });
        Ok(())
    }
}

fn effect_name(action: &Action) -> Result<&str, Refusal> {
    let name = action.effect.as_deref().map(str::trim).filter(|e| !e.is_empty());
    name.ok_or_else(|| Refusal::missing("effect", action.action))
}

/// The number of rounds, if given.
fn rounds(action: &Action) -> Result<Option<i32>, Refusal> {
    let most = i32::try_from(limits::ROUNDS_MAX).unwrap_or(i32::MAX);
    if action.rounds.is_some_and(|rounds| !(1..=most).contains(&rounds)) {
        return Err(Refusal::argument("rounds", format!("must be 1 to {most}")));
    }
    Ok(action.rounds)
}

/// The damage by type.
fn parts(action: &Action) -> Result<Vec<DamagePart>, Refusal> {
    let mut parts = action.parts.clone();
    if let Some(amount) = action.amount {
        parts.push(DamagePart { amount, damage_type: action.damage_type.clone().unwrap_or_default() });
    }
    if parts.is_empty() {
        return Err(Refusal::missing("amount", action.action));
    }
    for part in &mut parts {
        within("amount", part.amount)?;
        if part.damage_type.is_empty() {
            continue;
        }
        let known = damage_type(&part.damage_type).ok_or_else(|| {
            let known = DAMAGE_TYPES.join(", ");
            Refusal::argument("damage_type", format!("\"{}\" is not one of {known}", part.damage_type))
        })?;
        part.damage_type = known.to_owned();
    }
    Ok(parts)
}

fn within(argument: &str, amount: i32) -> Result<i32, Refusal> {
    if (0..=limits::AMOUNT_MAX).contains(&amount) {
        return Ok(amount);
    }
    Err(Refusal::argument(argument, format!("must be 0 to {}", limits::AMOUNT_MAX)))
}

/// What ends a condition, and its rounds.
fn until(action: &Action, by: Option<&Participant>) -> Result<(Until, Option<i32>), Refusal> {
    let rounds = rounds(action)?;
    let needs = |argument| Refusal::missing(argument, action.action);
    let usual = if action.rounds.is_some() { Duration::Rounds } else { Duration::UntilDispelled };
    let until = match action.duration.unwrap_or(usual) {
        Duration::Rounds if action.rounds.is_none() => return Err(needs("rounds")),
        Duration::Rounds => Until::Rounds,
        Duration::Concentration => {
            let caster = by.ok_or_else(|| needs("participant_id"))?;
            Until::Concentration { by: caster.id.clone() }
        }
        Duration::UntilDispelled => Until::Dispelled,
        Duration::UntilRest => Until::Rest,
        Duration::SaveEnds => {
            let dc = action.save_dc.ok_or_else(|| needs("save_dc"))?;
            let ability = action.save_ability.ok_or_else(|| needs("save_ability"))?;
            if !(0..=100).contains(&dc) {
                return Err(Refusal::argument("save_dc", "must be 0 to 100"));
            }
            Until::Save { dc, ability }
        }
    };
    Ok((until, rounds))
}

/// The level of exhaustion: as given but never less than before, or one more than before (SRD 5.1, "Exhaustion").
fn level(action: &Action, name: &str, target: &Participant) -> Result<Option<i32>, Refusal> {
    match (name, action.level) {
        ("exhaustion", None) => Ok(Some((target.creature.exhaustion() + 1).min(6))),
        ("exhaustion", Some(level @ 1..=6)) => Ok(Some(level.max(target.creature.exhaustion()))),
        ("exhaustion", Some(_)) => Err(Refusal::argument("level", "must be 1 to 6")),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(Refusal::argument("level", "only exhaustion has levels")),
    }
}
