//! Grappling, shoving and escaping (SRD 5.1, "Grappling", "Shoving a Creature").

use super::Work;
use crate::{
    dice::Dice,
    encounter::{Action, ActionKind, Cost, Event, Participant, Position, Refusal, walk},
    resolve::{ContestArgs, ContestPurpose, resolve_contest},
    srd::same,
};

impl Work {
    /// A contest that takes one attack of the attack action. An escape takes the whole action.
    pub(super) fn contest(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let escapes = action.action == ActionKind::Escape;
        let opponent = if escapes { self.grappler(&actor, action)? } else { self.target(action)? };
        if opponent.id == actor.id {
            return Err(Refusal::argument("target_id", "a participant cannot wrestle itself"));
        }
        let attack_action = action.cost.is_none_or(|cost| cost == Cost::Action);
        if !escapes && !attack_action && !action.overridden {
            let message = format!("`{}` can only take an attack of the attack action", action.action.name());
            return Err(Refusal::argument("cost", message));
        }
        let price = self.price(&actor, action, !escapes)?;
        if !self.is_able(&actor) {
            return Ok(());
        }
        let far = self.state.distance_ft(&actor, &opponent).filter(|d| *d > actor.reach_ft());
        if let Some(distance) = far.filter(|_| !escapes) {
            self.cannot(&format!("{} is {distance} feet away", opponent.creature.name));
            return Ok(());
        }
        let purpose = match (action.action, action.away) {
            (ActionKind::Escape, _) => ContestPurpose::Escape,
            (ActionKind::Shove, true) => ContestPurpose::ShoveAway,
            (ActionKind::Shove, false) => ContestPurpose::ShoveProne,
            _ => ContestPurpose::Grapple,
        };
        let args = ContestArgs { purpose: Some(purpose), ..ContestArgs::default() };
        let outcome = resolve_contest(&actor.creature, &opponent.creature, &args, &action.circumstances, dice)?;
        if outcome.impossible {
            self.tell(outcome);
            return Ok(());
        }
        self.push(price);
        let (won, effects) = (outcome.success, outcome.effects.clone());
        self.tell(outcome);
        self.land(Some(&actor.id), &effects, dice)?;
        if let Some(to) = pushed(&actor, &opponent).filter(|_| won && purpose == ContestPurpose::ShoveAway)
            && walk::is_free(&self.state, &opponent, to)
        {
            self.push(Event::Moved { participant: opponent.id, to: Some(to), cost_ft: 0 });
        }
        Ok(())
    }

    /// Who holds the actor: the named target, or else the source of its condition.
    fn grappler(&self, actor: &Participant, action: &Action) -> Result<Participant, Refusal> {
        if action.target_id.is_some() {
            return self.target(action);
        }
        let held = actor.creature.conditions.iter().find(|c| same(&c.name, "grappled"));
        let by = held.and_then(|c| c.source.as_deref());
        let by = by.and_then(|by| self.state.participants().iter().find(|p| p.creature.is_called(by)));
        by.cloned().ok_or_else(|| Refusal::missing("target_id", action.action))
    }
}

/// The square directly away from the one who pushes.
fn pushed(actor: &Participant, opponent: &Participant) -> Option<Position> {
    let (from, at) = (actor.position?, opponent.position?);
    let away = |own: i32, theirs: i32| theirs.saturating_add(theirs.saturating_sub(own).signum());
    let to = Position { x: away(from.x, at.x), y: away(from.y, at.y), z: at.z };
    (to != at).then_some(to)
}
