//! What an action comes to.
//!
//! Decisions are made on a copy: each event is folded into it at once, so that what follows (a concentration check, a
//! grapple that ends) sees what came before. The copy shares every sheet that is not touched.
//!
//! - `check`: what may be said at all; `attack`: weapons, spells; `manoeuvre`: grapples and shoves; `permit`: what a spell or a blow takes of a turn; `harm`: damage, healing, conditions; `spend`: slots and resources.
//! - `turn`: turns and what ticks; `stance`: dash, dodge and the like; `movement`: over the grid; `aftermath`: what follows.

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

use serde::{Deserialize, Serialize};

use super::{
    Action, ActionKind, Cost, Encounter, EndOutcome, Event, Participant, Refusal, Status, limits, setup::text,
};
use crate::{
    dice::Dice,
    resolve::{Outcome, StateChange, impossible},
};

/// What an action comes to. Nothing has happened yet: fold the events, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What happens. Empty when it cannot be done.
    pub events: Vec<Event>,
    /// What was resolved, the action first, then what it led to; with the dice that fell.
    pub outcomes: Vec<Outcome>,
}

/// A decision in the making.
pub(super) struct Work {
    state: Encounter,
    done: Decision,
}

impl Encounter {
    /// Decides what an action comes to; changes nothing.
    ///
    /// Dice: those of the action's resolver, then a concentration check for each blow, in order.
    ///
    /// # Errors
    /// See [`Refusal`]. What cannot be done in the game is a decision without events, its outcome `impossible`.
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

    /// Decides what changes that were resolved elsewhere come to: they are made as those of an action are, with the
    /// concentration checks they ask for, the spells that end, and what dropping to 0 leads to. `by` is credited with them.
    ///
    /// The changes are those a resolver gave for participants as they stand now. Dice: a concentration check for each blow,
    /// in order.
    ///
    /// # Errors
    /// After the end; when `by` or whom a change is about does not take part; when dice run out.
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

    /// Decides how it ends.
    ///
    /// # Errors
    /// When it has ended already, or the notes are too long.
    pub fn end(&self, outcome: EndOutcome, notes: Option<&str>) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        text("notes", notes.unwrap_or_default(), limits::NOTES_CHARS_MAX)?;
        let event = Event::Ended { outcome, notes: notes.map(str::to_owned) };
        Ok(Decision { events: vec![event], outcomes: Vec::new() })
    }

    /// Folds all events of a decision.
    pub fn apply_all(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.apply(event));
    }

    /// How the first turn begins.
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
            Kind::UseResource => self.use_resource(action),
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

    /// One more event, folded at once.
    fn push(&mut self, event: Event) {
        self.state.apply(&event);
        self.done.events.push(event);
    }

    fn tell(&mut self, outcome: Outcome) {
        self.done.outcomes.push(outcome);
    }

    /// It cannot be done.
    fn cannot(&mut self, reason: &str) {
        self.tell(impossible(reason));
    }

    /// Who acts: the one named, or whose turn it is. Anybody when it is something a reaction does, or overridden.
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
            return Err(Refusal::used_up("reaction", format!("{} has no reaction left", actor.id)));
        }
        if in_turn {
            let message = "a reaction is an attack or a spell that was provoked or readied, or a spell cast as one";
            return Err(Refusal::argument("cost", message));
        }
        Err(Refusal::NotYourTurn { current: current.map(|c| c.id.clone()) })
    }

    /// Who is named as the actor, in anybody's turn; none when nobody is.
    fn source(&self, action: &Action) -> Result<Option<Participant>, Refusal> {
        action.participant_id.as_deref().map(|id| self.find("participant_id", id)).transpose()
    }

    /// Who is affected.
    fn target(&self, action: &Action) -> Result<Participant, Refusal> {
        let id = action.target_id.as_deref().ok_or_else(|| Refusal::missing("target_id", action.action))?;
        self.find("target_id", id)
    }

    /// Who is affected: the target, or the actor when no target is named.
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
