//! Turns, and what begins and ends with them (SRD 5.1, "Your Turn").

use super::Work;
use crate::{
    dice::Dice,
    encounter::{
        Action, Event, Participant, Refusal, Stance, Until, fold::Moment, lasting::lasts_through_the_turn, limits,
        setup::rolled,
    },
    resolve::{Circumstances, SavingThrowArgs, StateChange, resolve_death_save, resolve_saving_throw},
    sheet::Life,
    srd::same,
};

/// Effects that end when the next turn of their source begins.
const UNTIL_NEXT_TURN: [&str; 4] = ["Dodge", "Help", "Reckless Attack", "Shield"];

impl Work {
    /// Ends the turn and begins the next.
    pub(super) fn advance(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let current = self.state.current().map(|p| p.id.clone());
        if let (Some(id), false) = (&action.participant_id, action.overridden) {
            self.find("participant_id", id)?;
            if current.as_ref() != Some(id) {
                return Err(Refusal::NotYourTurn { current });
            }
        }
        if !self.state.anybody_left() {
            return Err(Refusal::NobodyLeft);
        }
        if let Some(id) = current {
            self.end_turn(&id, self.state.round(), dice)?;
        }
        self.next(dice)
    }

    /// Begins the first turn of the fight.
    pub(in crate::encounter) fn begin(&mut self, dice: &mut dyn Dice) -> Result<(), Refusal> {
        if self.state.anybody_left() { self.next(dice) } else { Ok(()) }
    }

    /// Lets somebody leave. What it does to others while it is there ends, and so does what others do to it. Its turn passes on.
    pub(super) fn leave(&mut self, id: &str, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let it = self.find("participant_id", id)?;
        let has_turn = self.state.current().is_some_and(|current| current.id == it.id);
        self.let_go(id);
        for change in self.until_next_turn_of(id).into_iter().chain(self.held_on(id)) {
            self.push(Event::Changed { by: None, change });
        }
        self.push(Event::Left { participant: it.id });
        match (has_turn, self.state.anybody_left()) {
            (false, _) => Ok(()),
            (true, false) => {
                self.push(Event::NobodyLeft);
                Ok(())
            }
            (true, true) => self.next(dice),
        }
    }

    /// Begins the next turn. That of a surprised participant is skipped.
    fn next(&mut self, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let mut round = self.state.round();
        // Everybody may lose a turn to surprise once, and may once be killed by a hazard as a turn begins.
        for _ in 0..=self.state.participants().len().saturating_mul(2) {
            let Some((next, in_round)) = self.state.next_turn(round) else { break };
            if in_round > limits::ROUNDS_MAX {
                return Err(Refusal::argument(
                    "action",
                    format!("a fight can have at most {} rounds", limits::ROUNDS_MAX),
                ));
            }
            let (id, surprised) = (next.id.clone(), next.surprised);
            round = in_round;
            if surprised {
                self.end_turn(&id, round, dice)?;
                continue;
            }
            self.start_turn(&id, round, dice)?;
            if self.state.participant(&id).is_some_and(|p| p.life() != Life::Dead) {
                return Ok(());
            }
        }
        // The last participants died as their turns ended or began.
        self.push(Event::NobodyLeft);
        Ok(())
    }

    fn start_turn(&mut self, id: &str, round: u32, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let first = self.state.began_at.is_none();
        self.push(Event::TurnStarted { participant: id.to_owned(), round });
        for change in self.until_next_turn_of(id).into_iter().chain(self.run_out(Moment::Start, id)) {
            self.push(Event::Changed { by: None, change });
        }
        if first { Ok(()) } else { self.caught(id, &mut Vec::new(), dice) }
    }

    /// The changes that remove what somebody gave until its next turn.
    fn until_next_turn_of(&self, id: &str) -> Vec<StateChange> {
        let over = |p: &Participant| {
            let given = p.creature.effects.iter().filter(|e| {
                e.rounds_remaining.is_none()
                    && e.source.as_deref() == Some(id)
                    && UNTIL_NEXT_TURN.iter().any(|name| same(name, &e.name))
            });
            let removed = given.map(|e| StateChange::RemoveEffect { creature: p.id.clone(), name: e.name.clone() });
            removed.collect::<Vec<_>>()
        };
        self.state.participants().iter().flat_map(over).collect()
    }

    /// Rolls the saves that end conditions, then counts down rounds.
    fn end_turn(&mut self, id: &str, round: u32, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let Some(it) = self.state.participant(id).cloned() else { return Ok(()) };
        for lasting in it.lasting.iter().filter(|_| it.life() != Life::Dead) {
            let Until::Save { dc, ability } = lasting.until else { continue };
            let Some(now) = self.state.participant(id).cloned() else { continue };
            let source = Some(lasting.condition.clone());
            let args = SavingThrowArgs { ability: ability.name().to_owned(), dc, source, damage: None };
            let outcome = resolve_saving_throw(&now.creature, &args, &Circumstances::default(), dice)?;
            let (saved, mut effects) = (outcome.success, outcome.effects.clone());
            self.tell(outcome);
            if saved {
                let (creature, name) = (id.to_owned(), lasting.condition.clone());
                effects.push(StateChange::RemoveCondition { creature, name });
            }
            self.land(None, &effects, dice)?;
        }
        self.push(Event::TurnEnded { participant: id.to_owned(), round });
        for change in self.run_out(Moment::End, id) {
            self.push(Event::Changed { by: None, change });
        }
        Ok(())
    }

    /// Removes what has no round left at this moment of somebody's turn.
    fn run_out(&self, moment: Moment, turn_of: &str) -> Vec<StateChange> {
        let clock = self.state.clock();
        let mut ended = Vec::new();
        for it in self.state.participants() {
            let creature = || it.id.clone();
            let is_over = |source: Option<&str>, rounds: Option<i32>, at: Moment| {
                rounds.is_some_and(|rounds| rounds <= 0) && clock.counts(&it.id, source) == (at, turn_of)
            };
            let conditions = it.creature.conditions.iter();
            let conditions = conditions.filter(|c| is_over(c.source.as_deref(), c.rounds_remaining, moment));
            ended.extend(
                conditions.map(|c| StateChange::RemoveCondition { creature: creature(), name: c.name.clone() }),
            );
            let effects = it.creature.effects.iter().filter(|e| {
                let through = lasts_through_the_turn(&e.name);
                match moment {
                    Moment::Start => !through && is_over(e.source.as_deref(), e.rounds_remaining, Moment::Start),
                    Moment::End => {
                        is_over(e.source.as_deref(), e.rounds_remaining, Moment::End)
                            || (through && is_over(e.source.as_deref(), e.rounds_remaining, Moment::Start))
                    }
                }
            });
            ended.extend(effects.map(|e| StateChange::RemoveEffect { creature: creature(), name: e.name.clone() }));
        }
        ended
    }

    /// Makes a death saving throw. Only one is allowed per turn.
    pub(super) fn death_save(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let it = match (&action.participant_id, &action.target_id) {
            (None, Some(id)) => self.find("target_id", id)?,
            (Some(id), _) => self.find("participant_id", id)?,
            (None, None) => self.actor(action)?,
        };
        if it.life() != Life::Dying {
            return Err(Refusal::NotDying);
        }
        let current = self.state.current().map(|p| p.id.clone());
        if current.as_ref() != Some(&it.id) && !action.overridden {
            return Err(Refusal::NotYourTurn { current });
        }
        if it.economy.death_save && !action.overridden {
            let message = format!("{} has already made its death saving throw in this turn", it.id);
            return Err(Refusal::used_up("death_save", message));
        }
        let outcome = resolve_death_save(&it.creature, &action.circumstances, dice)?;
        let effects = outcome.effects.clone();
        self.tell(outcome);
        self.push(Event::Took { participant: it.id.clone(), stance: Stance::DeathSave });
        self.land(None, &effects, dice)
    }

    /// Rolls or sets the initiative of one participant, or of all that are not dead.
    pub(super) fn roll_initiative(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let named = action.participant_id.as_deref().or(action.target_id.as_deref());
        let who: Vec<Participant> = match named {
            Some(id) => vec![self.find("participant_id", id)?],
            None => self.state.participants().iter().filter(|p| p.life() != Life::Dead).cloned().collect(),
        };
        let most = limits::AMOUNT_MAX;
        for it in who {
            let bonus =
                Some(it.initiative_bonus).filter(|b| *b != it.creature.modifier(crate::srd::Ability::Dexterity));
            let initiative = match action.amount.filter(|_| named.is_some()) {
                Some(amount) if (-most..=most).contains(&amount) => amount,
                Some(_) => return Err(Refusal::argument("amount", "is not a possible initiative")),
                None => rolled(&it.creature, bonus, dice)?,
            };
            self.push(Event::Initiative { participant: it.id, initiative });
        }
        Ok(())
    }
}
