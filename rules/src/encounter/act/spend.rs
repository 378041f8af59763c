//! Spell slots and class resources.

use super::Work;
use crate::{
    encounter::{Action, Event, Refusal, Stance, choices::ACTION_SURGE},
    resolve::StateChange,
    srd::same,
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
            let message = format!("{} has no spell slot of level {level} left", actor.id);
            return Err(Refusal::used_up("spell_slot", message));
        }
        let change = StateChange::SpendSlot { creature: actor.id.clone(), level };
        self.push(Event::Changed { by: Some(actor.id), change });
        Ok(())
    }

    /// Spends uses of a resource. Action Surge gives another action.
    pub(super) fn use_resource(&mut self, action: &Action) -> Result<(), Refusal> {
        let actor = self.spender(action)?;
        let name = action.resource.as_deref().ok_or_else(|| Refusal::missing("resource", action.action))?;
        let amount = action.amount.unwrap_or(1);
        if amount < 1 {
            return Err(Refusal::argument("amount", "must be 1 or more"));
        }
        let Some(pool) = actor.creature.resources.iter().find(|r| same(&r.name, name)) else {
            let known = actor.creature.resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {known}") };
            return Err(Refusal::argument("resource", format!("{} has no such resource: {known}", actor.id)));
        };
        if pool.remaining < amount {
            let message = format!("{} has {} of {} left", actor.id, pool.remaining, pool.name);
            return Err(Refusal::used_up("resource", message));
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

    /// Who spends: the actor, otherwise the target, otherwise the participant whose turn it is.
    fn spender(&self, action: &Action) -> Result<super::Participant, Refusal> {
        match (&action.participant_id, &action.target_id) {
            (Some(id), _) => self.find("participant_id", id),
            (None, Some(id)) => self.find("target_id", id),
            (None, None) => self.state.current().cloned().ok_or(Refusal::NotYourTurn { current: None }),
        }
    }
}
