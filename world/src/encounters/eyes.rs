//! Who reads a fight: its game master, who sees everything, or somebody with a player's view of it.
//!
//! All answers about fights are made here, from the rules' types, for one or the other. What players see is decided by
//! [`rules::encounter::Watcher`] alone; nothing is ever taken out of JSON.

use std::collections::HashSet;

use entity::session::Role;
use rules::{
    encounter::{
        Changes, Encounter, Participant, ParticipantUpdate, Refusal, SeenCombatant, Summary, Verbosity, Watcher,
    },
    resolve::Outcome,
};
use uuid::Uuid;

use super::answers::{FightShown, Standing};
use crate::{playing::Reader, rules::answers::OutcomeShown};
use edge::caller::Caller;

/// Who reads a fight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// The game master, who sees everything.
    Master,
    /// Everybody else, with the character that they play, if any.
    Player(Option<Uuid>),
}

impl Eyes {
    /// A caller's. Without the scope `gm` everybody sees what players see.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        if caller.sees_secrets() { Self::Master } else { Self::Player(caller.player) }
    }

    /// The eyes of the reader for whom a tool reads.
    #[must_use]
    pub fn of_reader(reader: Reader) -> Self {
        if reader.role == Role::Player { Self::Player(reader.player) } else { Self::Master }
    }

    /// Calls one of the two functions, depending on who reads.
    fn look<T>(self, it: &Encounter, all: impl FnOnce() -> T, some: impl FnOnce(Watcher<'_>) -> T) -> T {
        match self {
            Self::Master => all(),
            Self::Player(character) => some(Watcher::of(it, character.map(|id| id.to_string()).as_deref())),
        }
    }

    /// Whether the reader knows of a participant.
    #[must_use]
    pub fn knows(self, it: &Encounter, participant: &Participant) -> bool {
        self.look(it, || true, |watcher| watcher.knows(participant))
    }

    /// The place of whoever has the turn among those whom the reader knows of, from 1; 0 if it is nobody's or of somebody unknown.
    #[must_use]
    pub fn turn(self, it: &Encounter) -> usize {
        self.look(it, || it.turn(), |watcher| watcher.turn().unwrap_or(0))
    }

    /// Whether the reader sees what a participant can do, as of the own character and its friends.
    #[must_use]
    pub fn sees_through(self, it: &Encounter, participant: &Participant) -> bool {
        self.look(it, || true, |watcher| watcher.is_friend(participant))
    }

    /// The fight.
    #[must_use]
    pub fn view(self, it: &Encounter, verbosity: Verbosity) -> FightShown {
        let all = || FightShown::Whole(Box::new(it.view(verbosity)));
        self.look(it, all, |watcher| FightShown::Seen(Box::new(watcher.view(verbosity))))
    }

    /// The ids of those whom only the game master knows of.
    #[must_use]
    pub fn hidden(self, it: &Encounter) -> Vec<String> {
        match self {
            Self::Master => it.participants().iter().filter(|p| p.hidden).map(|p| p.id.clone()).collect(),
            Self::Player(_) => Vec::new(),
        }
    }

    /// What came of something. `it` is the fight afterwards.
    #[must_use]
    pub fn outcomes(self, it: &Encounter, outcomes: Vec<Outcome>) -> Vec<OutcomeShown> {
        match self {
            Self::Master => outcomes.into_iter().map(|one| OutcomeShown::Whole(Box::new(one))).collect(),
            Self::Player(_) => self.look(it, Vec::new, |watcher| {
                let seen = outcomes.iter().filter_map(|one| watcher.outcome(one));
                seen.map(|one| OutcomeShown::Seen(Box::new(one))).collect()
            }),
        }
    }

    /// How a fight stands after an action, with every participant of which the reader sees a change.
    #[must_use]
    pub fn standing(self, before: &Encounter, it: &Encounter) -> Standing {
        // Nobody leaves by an action, so the indexes match.
        let both = before.participants().iter().zip(it.participants());
        let moved: HashSet<&str> = both.filter(|(then, now)| then != now).map(|(_, now)| now.id.as_str()).collect();
        let all = || {
            let view = it.view(Verbosity::Detailed);
            let all = view.participants.unwrap_or_default().into_iter();
            let changed = all.filter(|one| moved.contains(one.id.as_str()));
            Standing {
                encounter_id: view.encounter_id,
                status: view.status,
                round: view.round,
                turn: Some(view.turn),
                current_participant_id: view.current_participant_id,
                participants: changed.map(|one| SeenCombatant::Whole(Box::new(one))).collect(),
                provoked: view.provoked,
                hidden: self.hidden(it),
            }
        };
        let some = |now: Watcher<'_>| {
            let view = now.view(Verbosity::Detailed);
            let then =
                self.look(before, Vec::new, |then| then.view(Verbosity::Detailed).participants.unwrap_or_default());
            let all = view.participants.unwrap_or_default();
            Standing {
                encounter_id: view.encounter_id,
                status: view.status,
                round: view.round,
                turn: view.turn,
                current_participant_id: view.current_participant_id,
                participants: all.into_iter().filter(|one| moved.contains(one.id()) && !then.contains(one)).collect(),
                provoked: view.provoked,
                hidden: Vec::new(),
            }
        };
        self.look(it, all, some)
    }

    /// What the fight did to the participants.
    #[must_use]
    pub fn updates(self, it: &Encounter) -> Vec<ParticipantUpdate> {
        self.look(it, || it.diff(), |watcher| watcher.updates(it.diff()))
    }

    /// What was written into a participant's record; `None` if the reader does not see it.
    #[must_use]
    pub fn changes(self, it: &Encounter, participant: &str, mut changes: Changes) -> Option<Changes> {
        let participant = it.anybody(participant)?;
        if !self.sees_through(it, participant) {
            return None;
        }
        self.look(it, || (), |watcher| watcher.name_only_known(&mut changes));
        Some(changes)
    }

    /// Why an action was refused, in words that tell the reader nothing else: no name of somebody unknown, and of what an enemy
    /// has left only that it is not enough.
    #[must_use]
    pub fn refusal(self, it: &Encounter, actor: Option<&str>, refusal: Refusal) -> Refusal {
        let actor = actor.map_or_else(|| it.current(), |id| it.participant(id));
        let is_plain = actor.is_none_or(|actor| self.sees_through(it, actor));
        let seen = |message: String, instead: &str| match is_plain {
            true => self.look(it, || message.clone(), |watcher: Watcher<'_>| watcher.unnamed(&message)),
            false => instead.to_owned(),
        };
        match refusal {
            Refusal::NoActionLeft { what, message } => {
                Refusal::NoActionLeft { what, message: seen(message, "not enough of that is left") }
            }
            Refusal::Argument { argument, message } => {
                Refusal::Argument { argument, message: seen(message, "is not possible for it") }
            }
            other => other,
        }
    }

    /// A short summary of the fight.
    #[must_use]
    pub fn summary(self, it: &Encounter) -> Summary {
        self.look(it, || it.summary(), |watcher| watcher.summary())
    }
}
