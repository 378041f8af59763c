//! Spell slots and class resources.

use super::Work;
use crate::{
    dice::Dice,
    encounter::{
        Action, Cost, Event, Refusal, Stance,
        choices::{ACTION_SURGE, SECOND_WIND},
    },
    resolve::{HealingArgs, Outcome, StateChange, apply_healing},
    srd::{Class, same},
};

impl Work {
    /// Spends a slot, in any turn because reactions take slots too.
    pub(super) fn use_spell_slot(&mut self, action: &Action) -> Result<(), Refusal> {
        let actor = self.spender(action)?;
        let level = action.level.or(action.attack.slot_level);
        let level = level.ok_or_else(|| Refusal::missing("level", action.action))?;
        if !(1..=9).contains(&level) {
            return Err(Refusal::argument("level", "must be 1 to 9"));
        }
        if actor.creature.slots_left(level) <= 0 {
            let message = format!("{} has no spell slot of level {level} left", actor.creature.name);
            return Err(Refusal::used_up("spell_slot", message));
        }
        let change = StateChange::SpendSlot { creature: actor.id.clone(), level };
        self.push(Event::Changed { by: Some(actor.id), change });
        Ok(())
    }

    /// Spends uses of a resource. Action Surge gives another action. Second Wind heals, as a bonus action.
    pub(super) fn use_resource(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.spender(action)?;
        let name = action.resource.as_deref().ok_or_else(|| Refusal::missing("resource", action.action))?;
        let amount = action.amount.unwrap_or(1);
        if amount < 1 {
            return Err(Refusal::argument("amount", "must be 1 or more"));
        }
        let Some(pool) = actor.creature.resources.iter().find(|r| same(&r.name, name)) else {
            let known = actor.creature.resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {known}") };
            return Err(Refusal::argument(
                "resource",
                format!("{} has no such resource: {known}", actor.creature.name),
            ));
        };
        if pool.remaining < amount {
            let message = format!("{} has {} of {} left", actor.creature.name, pool.remaining, pool.name);
            return Err(Refusal::used_up("resource", message));
        }
        if same(&pool.name, SECOND_WIND) {
            return self.second_wind(action, pool.name.clone(), dice);
        }
        let creature = actor.id.clone();
        let change = StateChange::SpendResource { creature, name: pool.name.clone(), amount };
        let surges = same(&pool.name, ACTION_SURGE);
        self.push(Event::Changed { by: Some(actor.id.clone()), change });
        if surges {
            self.push(Event::Took { participant: actor.id, stance: Stance::Surge });
        }
        Ok(())
    }

    /// Regains 1d10 hit points and the level as a fighter (SRD 5.1, "Second Wind").
    fn second_wind(&mut self, action: &Action, name: String, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let bonus = Action { cost: action.cost.or(Some(Cost::BonusAction)), ..action.clone() };
        let price = self.price(&actor, &bonus, false)?;
        if !self.is_able(&actor) {
            return Ok(());
        }
        let formula = Some(format!("1d10+{}", actor.creature.class_level(Class::Fighter)));
        let healed = apply_healing(&actor.creature, &HealingArgs { amount: None, formula }, dice)?;
        let healed = Outcome { check_type: name.clone(), ..healed };
        let effects = healed.effects.clone();
        self.push(price);
        let creature = actor.id.clone();
        let change = StateChange::SpendResource { creature, name, amount: 1 };
        self.push(Event::Changed { by: Some(actor.id.clone()), change });
        self.tell(healed);
        self.land(Some(&actor.id), &effects, dice)
    }

    /// Who spends: the actor, otherwise the target, otherwise the participant whose turn it is.
    fn spender(&self, action: &Action) -> Result<super::Participant, Refusal> {
        match (&action.participant_id, &action.target_id) {
            (Some(id), _) => self.find("participant_id", id),
            (None, Some(id)) => self.find("target_id", id),
            (None, None) => self.state.current().cloned().ok_or(Refusal::NotYourTurn { current: None }),
        }
    }
}
