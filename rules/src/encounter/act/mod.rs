//! Decides what an action does.
//!
//! Decisions are made on a copy of the encounter. Each event is applied to the copy at once, so that later parts of the decision (a
//! concentration check, the end of a grapple) see it. The copy shares all sheets that do not change.
//!
//! - `check`: limits on the input; `attack`: weapons and spells; `manoeuvre`: grapples and shoves; `permit`: what attacks and spells
//!   cost; `harm`: damage, healing, conditions; `spend`: slots and resources.
//! - `turn`: turns and what ends with them; `stance`: dash, dodge and the like; `movement`: over the grid; `aftermath`: what follows from
//!   changes.

mod aftermath;
mod attack;
mod check;
mod harm;
mod manoeuvre;
mod movement;
mod permit;
mod spend;
mod stance;
mod turn;

use super::{
    Action, ActionKind, Cost, Decision, Encounter, EndOutcome, Event, Participant, Refusal, Status, arguments::text,
    limits,
};
use crate::{
    dice::Dice,
    resolve::{Outcome, StateChange, impossible},
};

/// A decision in progress.
pub(super) struct Work {
    state: Encounter,
    done: Decision,
}

impl Encounter {
    /// Decides what an action does, and changes nothing.
    ///
    /// Dice: those of the action's resolver, then a concentration check for each hit, in order.
    ///
    /// # Errors
    /// See [`Refusal`]. An action that the rules of the game forbid is not an error but a decision without events, with
    /// an `impossible` outcome.
    pub fn act(&self, action: &Action, dice: &mut dyn Dice) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        let mut work = Work { state: self.clone(), done: Decision::default() };
        work.decide(action, dice)?;
        if action.overridden && !work.done.events.is_empty() {
            let overridden = Event::Overridden { participant: action.participant_id.clone(), action: action.action };
            work.done.events.push(overridden);
        }
        Ok(work.done)
    }

    /// Decides what follows from changes that were resolved elsewhere. They are made like those of an action, with the
    /// resulting concentration checks, ended spells, and the consequences of dropping to 0. They count for `by`.
    ///
    /// A resolver must have made the changes for the participants as they are now. Dice: a concentration check for each
    /// hit, in order.
    ///
    /// # Errors
    /// After the end; if `by` or a creature in the changes does not take part; if dice run out.
    pub fn absorb(&self, by: Option<&str>, effects: &[StateChange], dice: &mut dyn Dice) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        let mut work = Work { state: self.clone(), done: Decision::default() };
        if let Some(by) = by {
            work.find("participant_id", by)?;
        }
        for change in effects {
            work.find("creature", change.creature())?;
        }
        work.land(by, effects, dice)?;
        Ok(work.done)
    }

    /// Decides how somebody leaves the fight, which is no action of its turn. If it has the turn, the next one begins. What the fight did
    /// to one with a record stays part of [`Encounter::diff`].
    ///
    /// # Errors
    /// After the end; if nobody has this id; if dice run out.
    pub fn leave(&self, id: &str, dice: &mut dyn Dice) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        let mut work = Work { state: self.clone(), done: Decision::default() };
        work.leave(id, dice)?;
        Ok(work.done)
    }

    /// Decides how the encounter ends.
    ///
    /// # Errors
    /// If it has already ended, or the notes are too long.
    pub fn end(&self, outcome: EndOutcome, notes: Option<&str>) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        text("notes", notes.unwrap_or_default(), limits::NOTES_CHARS_MAX)?;
        let event = Event::Ended { outcome, notes: notes.map(str::to_owned) };
        Ok(Decision { events: vec![event], outcomes: Vec::new() })
    }

    /// Applies all events of a decision.
    pub fn apply_all(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.apply(event));
    }

    /// The events of the first turn's beginning.
    pub(super) fn first_turn(&self, dice: &mut dyn Dice) -> Result<Vec<Event>, Refusal> {
        let mut work = Work { state: self.clone(), done: Decision::default() };
        work.begin(dice)?;
        Ok(work.done.events)
    }
}

impl Work {
    fn decide(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        use ActionKind as Kind;
        check::check(action)?;
        let timed = self.timed(action);
        let action = timed.as_ref().unwrap_or(action);
        match action.action {
            Kind::Attack | Kind::CastSpell if action.target_ids.is_empty() => self.attack(action, dice),
            Kind::Attack | Kind::CastSpell => self.area(action, dice),
            Kind::Damage => self.damage(action, dice),
            Kind::Heal => self.heal(action, dice),
            Kind::TempHp => self.temp_hp(action),
            Kind::AddCondition => self.add_condition(action),
            Kind::RemoveCondition => self.remove_condition(action),
            Kind::AddEffect => self.add_effect(action),
            Kind::RemoveEffect => self.remove_effect(action),
            Kind::UseSpellSlot => self.use_spell_slot(action),
            Kind::UseResource => self.use_resource(action, dice),
            Kind::Move => self.walk(action, dice),
            Kind::StandUp => self.stand_up(action),
            Kind::DeathSave => self.death_save(action, dice),
            Kind::RollInitiative => self.roll_initiative(action, dice),
            Kind::AdvanceTurn => self.advance(action, dice),
            Kind::Conceal | Kind::Reveal => self.hide_from_players(action),
            Kind::Dash | Kind::Disengage | Kind::Dodge | Kind::Help => self.stance(action),
            Kind::Hide | Kind::Ready | Kind::Search | Kind::UseObject | Kind::Improvise => self.only_cost(action),
            Kind::Grapple | Kind::Shove | Kind::Escape => self.contest(action, dice),
            Kind::EndConcentration => self.end_concentration(action),
        }
    }

    /// Adds an event, and applies it at once.
    fn push(&mut self, event: Event) {
        self.state.apply(&event);
        self.done.events.push(event);
    }

    fn tell(&mut self, outcome: Outcome) {
        self.done.outcomes.push(outcome);
    }

    /// Makes the action impossible.
    fn cannot(&mut self, reason: &str) {
        self.tell(impossible(reason));
    }

    /// The participant that acts: the named one, or the one whose turn it is. It must be its turn, unless the action is
    /// a reaction or overridden.
    fn actor(&self, action: &Action) -> Result<Participant, Refusal> {
        let current = self.state.current();
        let actor = match &action.participant_id {
            Some(id) => self.find("participant_id", id)?,
            None => current.cloned().ok_or(Refusal::NotYourTurn { current: None })?,
        };
        let in_turn = current.is_some_and(|c| c.id == actor.id);
        let reacts = action.cost == Some(Cost::Reaction);
        if action.overridden || (in_turn && !reacts) || (reacts && self.may_react(&actor, action)) {
            return Ok(actor);
        }
        let kind = matches!(action.action, ActionKind::Attack | ActionKind::CastSpell);
        if reacts && kind && actor.economy.reaction {
            return Err(Refusal::used_up("reaction", format!("{} has no reaction left", actor.creature.name)));
        }
        if in_turn {
            let message =
                "only a provoked or readied attack or spell, or a spell cast as a reaction, can take the reaction";
            return Err(Refusal::argument("cost", message));
        }
        Err(Refusal::NotYourTurn { current: current.map(|c| c.id.clone()) })
    }

    /// The participant that is named as the actor, in any turn; `None` if nobody is named.
    fn source(&self, action: &Action) -> Result<Option<Participant>, Refusal> {
        action.participant_id.as_deref().map(|id| self.find("participant_id", id)).transpose()
    }

    /// The target.
    fn target(&self, action: &Action) -> Result<Participant, Refusal> {
        let id = action.target_id.as_deref().ok_or_else(|| Refusal::missing("target_id", action.action))?;
        self.find("target_id", id)
    }

    /// The target, or the actor if no target is named.
    fn target_or_self(&self, action: &Action) -> Result<Participant, Refusal> {
        match (&action.target_id, &action.participant_id) {
            (None, Some(id)) => self.find("participant_id", id),
            _ => self.target(action),
        }
    }

    fn find(&self, argument: &'static str, id: &str) -> Result<Participant, Refusal> {
        let found = self.state.participant(id).cloned();
        found.ok_or_else(|| Refusal::Unknown { argument, id: id.chars().take(limits::ID_CHARS_MAX).collect() })
    }
}
