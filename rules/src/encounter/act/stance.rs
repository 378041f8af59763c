//! Actions that only use the turn (SRD 5.1, "Actions in Combat").

use super::{Work, permit::cast};
use crate::{
    encounter::{Action, ActionKind, Cost, Event, Participant, Refusal, Stance},
    resolve::StateChange,
    sheet::{ActiveEffect, Life},
};

impl Work {
    /// The cost of an action, if the actor can pay it. `attack`: whether an attack of the attack action pays for it.
    pub(super) fn price(&self, actor: &Participant, action: &Action, attack: bool) -> Result<Event, Refusal> {
        let off_hand = attack && action.action == ActionKind::Attack && action.circumstances.context.off_hand;
        let usual = if off_hand { Cost::BonusAction } else { Cost::Action };
        let cost = action.cost.unwrap_or(usual);
        let economy = &actor.economy;
        let cast = cast(actor, action);
        let paid = |cost, attacks_left| Event::Spent { participant: actor.id.clone(), cost, attacks_left, cast };
        let further = attack && cost == Cost::Action && economy.attacks_left > 0;
        if further {
            return Ok(paid(cost, economy.attacks_left - 1));
        }
        let fresh = match cost {
            Cost::Action if attack => actor.attacks_per_action.saturating_sub(1).max(0),
            Cost::Action => 0,
            _ => economy.attacks_left,
        };
        let used = match cost {
            Cost::Action => economy.action,
            Cost::BonusAction => economy.bonus_action,
            Cost::Reaction => economy.reaction,
            Cost::Free if action.overridden => false,
            Cost::Free => return Err(Refusal::argument("cost", "`free` needs `override`")),
        };
        if action.overridden {
            return Ok(paid(cost, if used { economy.attacks_left } else { fresh }));
        }
        if used {
            let message = format!("{} has no {} left in this turn", actor.creature.name, cost.name().replace('_', " "));
            return Err(Refusal::used_up(cost.name(), message));
        }
        if cost == Cost::Reaction && actor.surprised {
            return Err(Refusal::used_up(
                cost.name(),
                format!("{} is surprised and cannot react yet", actor.creature.name),
            ));
        }
        Ok(paid(cost, fresh))
    }

    /// Whether a participant can act. If not, the outcome says why.
    pub(super) fn is_able(&mut self, actor: &Participant) -> bool {
        let life = actor.life();
        if life == Life::Alive && !actor.creature.is_incapacitated() {
            return true;
        }
        let why = match life {
            Life::Dead => "is dead",
            Life::Alive => "is incapacitated and cannot act",
            Life::Dying | Life::Stable => "is unconscious and cannot act",
        };
        self.cannot(&format!("{} {why}", actor.creature.name));
        false
    }

    /// Dash, disengage, dodge, help.
    pub(super) fn stance(&mut self, action: &Action) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let helped = match action.action {
            ActionKind::Help => Some(self.target(action)?),
            _ => None,
        };
        if helped.as_ref().is_some_and(|h| h.id == actor.id) {
            return Err(Refusal::argument("target_id", "a participant cannot help itself"));
        }
        let price = self.price(&actor, action, false)?;
        if !self.is_able(&actor) {
            return Ok(());
        }
        let stance = match action.action {
            ActionKind::Dash => Stance::Dash,
            ActionKind::Disengage => Stance::Disengage,
            ActionKind::Dodge => Stance::Dodge,
            _ => Stance::Help,
        };
        self.push(price);
        self.push(Event::Took { participant: actor.id.clone(), stance });
        let effect = match (stance, &helped) {
            (Stance::Dodge, _) => Some((actor.id.clone(), "Dodge")),
            (Stance::Help, Some(helped)) => Some((helped.id.clone(), "Help")),
            _ => None,
        };
        if let Some((creature, name)) = effect {
            let source = Some(actor.id.clone());
            let effect = ActiveEffect { name: name.to_owned(), source, rounds_remaining: None };
            self.push(Event::Changed { by: Some(actor.id), change: StateChange::AddEffect { creature, effect } });
        }
        Ok(())
    }

    /// Hides a participant from players or shows it. A game master can do this in any turn, and it costs nothing.
    pub(super) fn hide_from_players(&mut self, action: &Action) -> Result<(), Refusal> {
        let it = self.target_or_self(action)?;
        let hidden = action.action == ActionKind::Conceal;
        if it.hidden != hidden {
            self.push(Event::Hid { participant: it.id, hidden });
        }
        Ok(())
    }

    /// Actions that cost something but are decided elsewhere.
    pub(super) fn only_cost(&mut self, action: &Action) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let price = self.price(&actor, action, false)?;
        if self.is_able(&actor) {
            self.push(price);
            if action.action == ActionKind::Ready {
                self.push(Event::Took { participant: actor.id, stance: Stance::Ready });
            }
        }
        Ok(())
    }
}
