//! Writes what happens in a fight into the campaign's log: one message for each action and group of readers.
//!
//! The text is made from the events alone, in the statement that writes the events (`store`). So everything that happens is told
//! exactly once, however it was requested, and undoing it removes its text. Players read how foes fare, not their numbers; the game master
//! reads the dice of foes in a message apart. What a hidden participant ([`Participant::hidden`]) does goes to the game master and to the
//! player who plays it.
//!
//! To tell a new kind of event, add an arm to [`Teller::event`].

use std::collections::BTreeSet;

use entity::message::{Author, Type};
use rules::{
    encounter::{Encounter, EndOutcome, Event, Participant, Stance, Watcher},
    resolve::{Outcome, StateChange},
    sheet::Life,
};

use super::{names::called, rolls};
use crate::messages::service::NewMessage;

/// The flavor that marks these messages.
pub const FLAVOR: &str = "fight";
/// The reader of whispers who is the game master.
const MASTER: &str = "gm";
/// The most characters of one message.
const TEXT_CHARS_MAX: usize = 4000;
/// Conditions that come with falling unconscious, and are not told separately.
const OF_FALLING: [&str; 3] = ["unconscious", "prone", "incapacitated"];

/// An action to tell.
pub struct ActionReport<'a> {
    pub name: &'a str,
    pub then: &'a Encounter,
    pub now: &'a Encounter,
    pub events: &'a [Event],
    /// The kind of action, and the weapon or spell that was used.
    pub action: &'a str,
    pub with: Option<&'a str>,
    pub outcomes: &'a [Outcome],
}

/// The messages for a fight that begins.
#[must_use]
pub fn beginning(it: &Encounter) -> Vec<NewMessage> {
    let mut teller = Teller::new(it, it);
    let name = it.name().filter(|name| !name.is_empty());
    let (foes, friends): (Vec<&Participant>, Vec<&Participant>) =
        it.participants().iter().filter(|p| !p.hidden).partition(|p| p.is_enemy);
    let names = |who: &[&Participant]| who.iter().map(|p| called(it, p)).collect::<Vec<_>>().join(", ");
    let sides = match (friends.is_empty(), foes.is_empty()) {
        (false, false) => format!(": {} against {}", names(&friends), names(&foes)),
        (true, true) => String::new(),
        _ => format!(": {}{}", names(&friends), names(&foes)),
    };
    teller.say(&[], format!("A fight begins{sides}."));
    for hidden in it.participants().iter().filter(|p| p.hidden) {
        teller.say(&[&hidden.id], format!("{} is present but hidden.", called(it, hidden)));
    }
    if let Some(current) = it.current() {
        teller.say(&[&current.id], format!("It is {}'s turn.", called(it, current)));
    }
    teller.messages(name.unwrap_or_default())
}

/// The messages for an action.
#[must_use]
pub fn action(told: &ActionReport<'_>) -> Vec<NewMessage> {
    let mut teller = Teller::new(told.then, told.now);
    // What is rolled outside of an attack comes before what it leads to, and what an attack leads to comes after it.
    let is_attack = told.events.iter().any(|event| matches!(event, Event::Attacked { .. }));
    let (first, later) =
        told.outcomes.split_at(if is_attack { told.outcomes.len().min(1) } else { told.outcomes.len() });
    if is_attack {
        first.iter().for_each(|outcome| teller.area(outcome));
    } else {
        first.iter().for_each(|outcome| teller.check(outcome));
    }
    for event in told.events {
        teller.event(event, told);
    }
    later.iter().for_each(|outcome| teller.check(outcome));
    teller.only_spent(told);
    teller.lives();
    teller.messages(told.name)
}

struct Teller<'a> {
    then: &'a Encounter,
    now: &'a Encounter,
    /// Sentences, each with the hidden participants that it names.
    said: Vec<(BTreeSet<String>, String)>,
    /// Sentences for the game master alone.
    apart: Vec<String>,
}

impl<'a> Teller<'a> {
    fn new(then: &'a Encounter, now: &'a Encounter) -> Self {
        Self { then, now, said: Vec::new(), apart: Vec::new() }
    }

    fn one(&self, id: &str) -> Option<&'a Participant> {
        self.now.participant(id).or_else(|| self.then.participant(id))
    }

    fn name(&self, id: &str) -> String {
        self.one(id).map_or_else(|| "Somebody".to_owned(), |p| called(self.now, p))
    }

    fn is_foe(&self, id: &str) -> bool {
        self.one(id).is_none_or(|p| p.is_enemy)
    }

    /// Adds a sentence that names the participants `who`. What is said already, as for each ray of a spell, is said once.
    fn say(&mut self, who: &[&str], sentence: String) {
        let said = (self.hidden_of(who), sentence);
        if self.said.last() != Some(&said) {
            self.said.push(said);
        }
    }

    fn hidden_of(&self, who: &[&str]) -> BTreeSet<String> {
        who.iter().filter(|id| self.one(id).is_some_and(|p| p.hidden)).map(|id| (*id).to_owned()).collect()
    }

    /// Adds what somebody did with its dice, which `told` makes of an outcome. Who may not see the dice reads `open` of it; the game master
    /// then reads them after the words of `begin`.
    fn say_dice(
        &mut self,
        who: &[&str],
        begin: &str,
        open: impl Fn(&str) -> String,
        told: impl Fn(Watcher<'a>) -> Option<String>,
    ) {
        let (seen, whole) = (told(Watcher::of(self.now, None)), told(Watcher::master(self.now)));
        let is_apart = self.readers(&self.hidden_of(who)) == [MASTER];
        match (seen, whole) {
            (_, Some(whole)) if is_apart => self.say(who, open(&whole)),
            (seen, whole) => {
                if let Some(whole) = whole.filter(|whole| Some(whole) != seen.as_ref()) {
                    self.apart.push(format!("{begin}: {whole}."));
                }
                if let Some(seen) = seen {
                    self.say(who, open(&seen));
                }
            }
        }
    }

    fn event(&mut self, event: &Event, told: &ActionReport<'_>) {
        match event {
            Event::Joined { participant } => {
                self.say(&[&participant.id], format!("{} joins the fight.", self.name(&participant.id)));
            }
            Event::Left { participant } => {
                self.say(&[participant], format!("{} leaves the fight.", self.name(participant)));
            }
            Event::Initiative { participant, initiative } => {
                self.say(&[participant], format!("{} has initiative {initiative}.", self.name(participant)));
            }
            Event::TurnStarted { participant, round } => {
                let round = if *round == told.then.round() { String::new() } else { format!("Round {round}. ") };
                self.say(&[participant], format!("{round}It is {}'s turn.", self.name(participant)));
            }
            Event::TurnEnded { participant, .. } => {
                self.say(&[participant], format!("{}'s turn is over.", self.name(participant)));
            }
            Event::NobodyLeft => self.say(&[], "Nobody is left to take a turn.".to_owned()),
            Event::Hid { participant, hidden } => {
                let how = if *hidden { "is out of sight" } else { "comes into view" };
                // Everybody may read this: players either knew of it before, or know now.
                self.said.push((BTreeSet::new(), format!("{} {how}.", self.name(participant))));
            }
            // Its roll is told.
            Event::Took { stance: Stance::DeathSave, .. } if !told.outcomes.is_empty() => {}
            Event::Took { participant, stance } => self.took(participant, *stance),
            Event::Moved { participant, to, cost_ft } => {
                let how = match (cost_ft, to) {
                    (1.., _) => format!("moves {cost_ft} feet"),
                    (_, None) => "moves".to_owned(),
                    (_, Some(_)) => "is moved".to_owned(),
                };
                self.say(&[participant], format!("{} {how}.", self.name(participant)));
            }
            Event::Provoked { by, target, .. } => {
                let sentence = format!(
                    "{} leaves the reach of {}, who may make an opportunity attack.",
                    self.name(target),
                    self.name(by)
                );
                self.say(&[by, target], sentence);
            }
            Event::Attacked { by, target, made, hit } => self.attacked(by, target, (*made, *hit), told),
            Event::Changed { change, .. } => self.changed(change),
            Event::Ended { outcome, .. } => self.say(&[], format!("The fight is over: {}.", ended(*outcome))),
            Event::Spent { .. } | Event::Lasts { .. } | Event::Overridden { .. } => {}
        }
    }

    fn took(&mut self, id: &str, stance: Stance) {
        let what = match stance {
            Stance::Dash => "dashes",
            Stance::Disengage => "disengages",
            Stance::Dodge => "dodges",
            Stance::Help => "helps",
            Stance::DeathSave => "makes a death saving throw",
            Stance::Ready => "waits for the moment to act",
            Stance::Surge => "surges into another action",
        };
        self.say(&[id], format!("{} {what}.", self.name(id)));
    }

    fn attacked(&mut self, by: &str, target: &str, (made, hit): (u32, u32), told: &ActionReport<'_>) {
        let with = told.with.map(|with| format!(" with {with}")).unwrap_or_default();
        let first = told.outcomes.first();
        let save = first.and_then(|first| first.participants.iter().find(|roll| roll.creature == target));
        let came = |watcher: Watcher<'_>| {
            let came = match (save, first.and_then(|first| Some((first, watcher.outcome(first)?)))) {
                (Some(save), _) => watcher.roll(save).as_ref().map(rolls::save_of),
                (None, Some((_, seen))) if made > 1 => Some(rolls::beams(&seen, made, hit)),
                (None, Some((first, seen))) if first.parties.rolled == [by] => Some(rolls::attack(&seen)),
                (None, Some((_, seen))) => Some(rolls::save(&seen)),
                (None, None) => None,
            };
            Some(came.unwrap_or_else(|| match (made, hit) {
                (1, 0) => "a miss".to_owned(),
                (1, _) => "a hit".to_owned(),
                (made, hit) => format!("{hit} of {made} hit"),
            }))
        };
        let (attacker, attacked) = (self.name(by), self.name(target));
        let open = |came: &str| format!("{attacker} attacks {attacked}{with}: {came}.");
        let saves = save.is_some() || first.is_some_and(|first| first.parties.rolled == [target]);
        let begin = match saves {
            true => format!(
                "The dice of {attacked}{}",
                told.with.map(|with| format!(" against {with}")).unwrap_or_default()
            ),
            false => format!("The dice of {attacker} against {attacked}{with}"),
        };
        self.say_dice(&[by, target], &begin, open, came);
        if hit > 0 && !self.hidden_of(&[by]).is_empty() {
            self.say(&[target], format!("{attacked} is hit by somebody unseen."));
        }
    }

    /// Says what a spell with several targets does before their saves.
    fn area(&mut self, outcome: &Outcome) {
        let seen = Watcher::of(self.now, None).outcome(outcome);
        let Some(seen) = seen.filter(|_| !outcome.participants.is_empty()) else { return };
        let Some(damage) = rolls::of_area(&seen) else { return };
        let who: Vec<&str> = outcome.parties.rolled.iter().map(String::as_str).collect();
        self.say(&who, format!("{}: {damage}.", seen.check_type));
    }

    /// Says what somebody rolled besides an attack, if anything was rolled.
    fn check(&mut self, outcome: &Outcome) {
        let who: Vec<&str> = outcome.parties.rolled.iter().chain(&outcome.parties.others).map(String::as_str).collect();
        match outcome.parties.rolled.as_slice() {
            _ if outcome.impossible || outcome.no_check => {}
            _ if !outcome.participants.is_empty() => {
                let came = |watcher: Watcher<'_>| {
                    let seen = watcher.outcome(outcome)?;
                    Some(format!("{}, {}", rolls::contest(&seen), seen.outcome))
                };
                let what = &outcome.check_type;
                self.say_dice(&who, &format!("The dice of {what}"), |came| format!("{what}: {came}."), came);
            }
            [one] if outcome.die_result > 0 => {
                let name = self.name(one);
                let came = |watcher: Watcher<'_>| watcher.outcome(outcome).as_ref().map(rolls::check);
                self.say_dice(&who, &format!("The dice of {name}"), |came| format!("{name}: {came}."), came);
            }
            _ => {}
        }
    }

    fn changed(&mut self, change: &StateChange) {
        let id = change.creature();
        let (name, is_foe) = (self.name(id), self.is_foe(id));
        let left = self.one(id).map(|p| format!("{} of {}", p.creature.hp, p.creature.max_hp_now()));
        let left = left.unwrap_or_default();
        let sentence = match change {
            StateChange::Damage { total, .. } if *total <= 0 => return,
            // Whoever dies is told of below.
            StateChange::Damage { .. } if is_foe && self.fell(id) => return,
            StateChange::Damage { .. } if is_foe => format!("{name} is hurt."),
            StateChange::Damage { total, .. } => format!("{name} takes {total} damage ({left} hit points)."),
            StateChange::Heal { .. } if is_foe => format!("{name} looks better."),
            StateChange::Heal { amount, .. } => format!("{name} regains {amount} hit points ({left})."),
            StateChange::AddCondition { condition, .. } if !self.comes_of_falling(id, &condition.name) => {
                format!("{name} is {}.", condition.name)
            }
            StateChange::RemoveCondition { name: condition, .. } if !self.comes_of_falling(id, condition) => {
                format!("{name} is no longer {condition}.")
            }
            // The rest is told of friends only, because nobody can see it of foes.
            _ if is_foe => return,
            StateChange::TempHp { temp_hp, .. } => format!("{name} has {temp_hp} temporary hit points."),
            StateChange::DeathSaves { successes, failures, .. } => {
                format!("{name}'s death saves: {successes} of 3 successes, {failures} of 3 failures.")
            }
            StateChange::SpendSlot { level, .. } => format!("{name} uses a spell slot of level {level}."),
            StateChange::SpendResource { name: resource, amount, .. } => format!("{name} uses {amount} of {resource}."),
            StateChange::StartConcentration { spell, .. } => format!("{name} concentrates on {spell}."),
            StateChange::EndConcentration { spell, .. } => format!("{name} no longer concentrates on {spell}."),
            StateChange::AddEffect { effect, .. } if !matches!(effect.name.as_str(), "Dodge" | "Help") => {
                format!("{name} has {}.", effect.name)
            }
            StateChange::RemoveEffect { name: effect, .. } if !matches!(effect.as_str(), "Dodge" | "Help") => {
                format!("{effect} on {name} ends.")
            }
            _ => return,
        };
        self.say(&[id], sentence);
    }

    fn life(of: &Encounter, id: &str) -> Option<Life> {
        of.participant(id).map(Participant::life)
    }

    fn fell(&self, id: &str) -> bool {
        let now = Self::life(self.now, id);
        now == Some(Life::Dead) && now != Self::life(self.then, id)
    }

    fn comes_of_falling(&self, id: &str, condition: &str) -> bool {
        Self::life(self.then, id) != Self::life(self.now, id) && OF_FALLING.contains(&condition)
    }

    /// Adds a sentence for an action that only spends time.
    fn only_spent(&mut self, told: &ActionReport<'_>) {
        let what = match told.action {
            "hide" => "hides",
            "search" => "searches",
            "use_object" => "uses an object",
            "improvise" => "tries something",
            "grapple" | "shove" | "escape" => "wrestles",
            "attack" | "cast_spell" if !told.events.iter().any(|e| matches!(e, Event::Attacked { .. })) => {
                "casts a spell"
            }
            _ => return,
        };
        let by = told.events.iter().find_map(|event| match event {
            Event::Spent { participant, .. } => Some(participant.as_str()),
            _ => None,
        });
        if let Some(by) = by {
            let with = told.with.filter(|_| what == "casts a spell");
            let what = with.map_or_else(|| what.to_owned(), |spell| format!("casts {spell}"));
            let hidden = self.one(by).filter(|p| p.hidden).map(|p| p.id.clone());
            // It comes first, because the rest resulted from it.
            self.said.insert(0, (hidden.into_iter().collect(), format!("{} {what}.", self.name(by))));
        }
    }

    /// Tells who fell, recovered or died.
    fn lives(&mut self) {
        for then in self.then.participants() {
            let Some(now) = self.now.participant(&then.id) else { continue };
            let what = match (then.life(), now.life()) {
                (before, after) if before == after => continue,
                (_, Life::Dead) => "dies",
                (_, Life::Dying) => "falls and is dying",
                (Life::Alive, Life::Stable) => "falls unconscious",
                (_, Life::Stable) => "is stable",
                (_, Life::Alive) => "regains consciousness",
            };
            self.say(&[&then.id], format!("{} {what}.", called(self.now, now)));
        }
    }

    /// The sentences as messages, one for each group of readers.
    fn messages(self, name: &str) -> Vec<NewMessage> {
        let mut circles: Vec<(Vec<String>, String)> = Vec::new();
        let said = self.said.iter().map(|(hidden, sentence)| (self.readers(hidden), sentence));
        let apart = self.apart.iter().map(|sentence| (vec![MASTER.to_owned()], sentence));
        for (readers, sentence) in apart.chain(said) {
            let at = circles.iter().position(|(of, _)| *of == readers).unwrap_or_else(|| {
                circles.push((readers, String::new()));
                circles.len() - 1
            });
            let Some((_, text)) = circles.get_mut(at) else { continue };
            if text.chars().count() + sentence.chars().count() < TEXT_CHARS_MAX {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(sentence);
            }
        }
        let message = |(whisper_to, text): (Vec<String>, String)| NewMessage {
            kind: Type::System,
            flavor: Some(FLAVOR.to_owned()),
            whisper_to,
            ..NewMessage::chat(Author::System, name, text)
        };
        circles.into_iter().filter(|(_, text)| !text.is_empty()).map(message).collect()
    }

    /// Who may read a sentence that names these hidden participants. Empty: everybody.
    fn readers(&self, hidden: &BTreeSet<String>) -> Vec<String> {
        let mut all = hidden.iter();
        let (Some(first), second) = (all.next(), all.next()) else { return Vec::new() };
        let own = self.one(first).and_then(|p| p.character_id.clone()).filter(|_| second.is_none());
        std::iter::once(MASTER.to_owned()).chain(own).collect()
    }
}

const fn ended(outcome: EndOutcome) -> &'static str {
    match outcome {
        EndOutcome::Victory => "victory",
        EndOutcome::Defeat => "defeat",
        EndOutcome::Fled => "somebody fled",
        EndOutcome::Negotiated => "the sides negotiated",
        EndOutcome::Other => "it ended without a winner",
    }
}
