//! How an encounter begins, and how a participant joins later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Decision, Encounter, Event, Lighting, NewParticipant, Participant, Refusal, Snapshot, Status, Terrain,
    arguments::{text, under},
    fold, limits, walk,
};
use crate::{
    dice::Dice,
    resolve::{Circumstances, roll_initiative},
    sheet::Creature,
    srd::{Ability, Class, extra_attacks, same},
};

/// What a new fight consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The id of the encounter.
    pub encounter_id: String,
    /// Its name.
    pub name: Option<String>,
    /// Who takes part.
    pub participants: Vec<NewParticipant>,
    /// The ground. Default: 50 by 50 empty squares.
    pub terrain: Option<Terrain>,
    /// Light.
    pub lighting: Lighting,
    /// The ids of surprised participants.
    pub surprise: Vec<String>,
    /// Warnings that the caller wants in the views.
    pub warnings: Vec<String>,
}

impl Encounter {
    /// Begins a fight: rolls everybody's initiative in the order given, and begins the first turn.
    ///
    /// The events are already applied to the returned encounter. Applying them again changes nothing, so a log may
    /// contain them.
    ///
    /// # Errors
    /// If dice run out, or an argument makes no sense or exceeds a limit.
    pub fn create(setup: &Setup, dice: &mut dyn Dice) -> Result<(Self, Vec<Event>), Refusal> {
        let terrain = setup.terrain.clone().unwrap_or_default();
        terrain.check()?;
        text("encounter_id", &setup.encounter_id, limits::ID_CHARS_MAX)?;
        text("name", setup.name.as_deref().unwrap_or_default(), limits::NAME_CHARS_MAX)?;
        if setup.participants.is_empty() {
            return Err(Refusal::argument("participants", "must have at least one entry"));
        }
        if setup.participants.len() > limits::PARTICIPANTS_MAX {
            return Err(Refusal::too_many("participants", limits::PARTICIPANTS_MAX));
        }
        if setup.surprise.len() > limits::PARTICIPANTS_MAX {
            return Err(Refusal::too_many("surprise", limits::PARTICIPANTS_MAX));
        }
        let mut surprise = setup.surprise.iter().enumerate();
        surprise.try_for_each(|(at, id)| text(&format!("surprise/{at}"), id, limits::ID_CHARS_MAX))?;
        let mut it = Self {
            id: setup.encounter_id.clone(),
            name: setup.name.clone(),
            status: Status::Active,
            round: 1,
            current: None,
            began_at: None,
            participants: Vec::with_capacity(setup.participants.len()),
            departed: Vec::new(),
            terrain: Arc::new(terrain),
            lighting: setup.lighting,
            provoked: Vec::new(),
            outcome: None,
            notes: None,
            warnings: setup.warnings.iter().take(limits::PARTICIPANTS_MAX).cloned().collect(),
        };
        let mut events = Vec::new();
        for (index, new) in setup.participants.iter().enumerate() {
            let surprised = setup.surprise.contains(&new.id);
            let participant = it.prepared(new, surprised, &format!("participants/{index}"), dice)?;
            let initiative = participant.initiative;
            events.push(Event::Initiative { participant: participant.id.clone(), initiative });
            it.participants.push(participant);
        }
        if let Some(unknown) = setup.surprise.iter().find(|id| it.at(id).is_none()) {
            return Err(Refusal::Unknown { argument: "surprise", id: unknown.clone() });
        }
        it.name_sources();
        let first = it.first_turn(dice)?;
        first.iter().for_each(|event| it.apply(event));
        // A surprised participant's skipped turn is already in the state. Applying its events again would skip another.
        events.extend(first.into_iter().filter(|event| matches!(event, Event::TurnStarted { .. })));
        Ok((it, events))
    }

    /// Decides how a participant joins. It has a turn in this round if its place in the order is still to come. Whoever left and comes
    /// back is as it was when it left, with the turn that it has had.
    ///
    /// # Errors
    /// As for [`Encounter::create`], and after the end.
    pub fn join(&self, new: &NewParticipant, dice: &mut dyn Dice) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        let others = self.departed.iter().filter(|before| before.id != new.id).count();
        if self.participants.len() + others >= limits::PARTICIPANTS_MAX {
            return Err(Refusal::too_many("participants", limits::PARTICIPANTS_MAX));
        }
        let mut participant = Box::new(self.prepared(new, false, "", dice)?);
        if self.is_too_late(&participant) {
            participant.acted_in = self.round;
        }
        Ok(Decision { events: vec![Event::Joined { participant }], outcomes: Vec::new() })
    }

    fn prepared(
        &self,
        new: &NewParticipant,
        surprised: bool,
        path: &str,
        dice: &mut dyn Dice,
    ) -> Result<Participant, Refusal> {
        let wrong = |field: &str, message: String| Refusal::argument(under(path, field), message);
        if new.id.trim().is_empty() {
            return Err(wrong("id", "must not be empty".to_owned()));
        }
        text(&under(path, "id"), &new.id, limits::ID_CHARS_MAX)?;
        text(&under(path, "name"), new.name.as_deref().unwrap_or_default(), limits::NAME_CHARS_MAX)?;
        if self.at(&new.id).is_some() {
            return Err(wrong("id", format!("\"{}\" already takes part", new.id)));
        }
        let twice = |own: &Option<String>| new.record.is_some() && own.is_some() && self.has_record(own.as_deref());
        for (field, own) in [("character_id", &new.character_id), ("npc_id", &new.npc_id)] {
            if twice(own) {
                return Err(wrong(field, "already takes part".to_owned()));
            }
        }
        let before = self.who_left(new, path)?;
        let mut creature = match (before, &new.record) {
            (Some(before), _) => Creature::clone(&before.creature),
            (None, Some(record)) => record.clone(),
            (None, None) => new.sheet(path)?,
        };
        fold::bound(&mut creature);
        let initial = before.map_or_else(|| Arc::new(Snapshot::of(&creature)), |before| before.initial.clone());
        creature.id.clone_from(&new.id);
        if let Some(name) = new.name.as_ref().filter(|n| !n.trim().is_empty()) {
            creature.name.clone_from(name);
        }
        let bound = |value: i32| value.clamp(-limits::AMOUNT_MAX, limits::AMOUNT_MAX);
        let bonus = new.initiative_bonus.map(bound);
        let initiative = match (new.initiative, before) {
            (Some(initiative), _) => bound(initiative),
            (None, Some(before)) => before.initiative,
            (None, None) => rolled(&creature, bonus, dice)?,
        };
        let bonus = bonus.or(before.map(|before| before.initiative_bonus));
        let attacks_per_action = new.attacks_per_action.map(|n| n.clamp(1, 20));
        let attacks_per_action = attacks_per_action.or(before.map(|before| before.attacks_per_action));
        let participant = Participant {
            id: new.id.clone(),
            character_id: new.character_id.clone().filter(|_| new.record.is_some()),
            npc_id: new.npc_id.clone().filter(|_| new.record.is_some()),
            initial,
            is_enemy: new.is_enemy,
            initiative,
            initiative_bonus: bonus.unwrap_or_else(|| creature.modifier(Ability::Dexterity)),
            acted_in: before.map_or(0, |before| before.acted_in),
            surprised: new.surprised || surprised,
            hidden: new.hidden,
            position: new.position,
            attacks_per_action: attacks_per_action.unwrap_or_else(|| attacks(&creature)),
            statistics: before.map(|before| before.statistics).unwrap_or_default(),
            economy: before.map(|before| before.economy).unwrap_or_default(),
            lasting: match (before, &new.record) {
                (Some(before), _) => before.lasting.clone(),
                (None, Some(_)) => Vec::new(),
                (None, None) => new.lasting(),
            },
            creature: Arc::new(creature),
        };
        self.check_place(&participant).map_err(|message| wrong("position", message))?;
        Ok(participant)
    }

    /// The participant that somebody was before it left. Only the same record can have the same id again.
    fn who_left(&self, new: &NewParticipant, path: &str) -> Result<Option<&Participant>, Refusal> {
        let record = new.record.as_ref().and(new.character_id.as_deref().or(new.npc_id.as_deref()));
        let wrong = |id: &str| Refusal::argument(under(path, "id"), format!("must be \"{id}\", as before it left"));
        match self.departed.iter().find(|p| p.record() == record || p.id == new.id) {
            Some(before) if before.record() != record => {
                Err(Refusal::argument(under(path, "id"), format!("\"{}\" was somebody else, who left", new.id)))
            }
            Some(before) if before.id != new.id => Err(wrong(&before.id)),
            before => Ok(before),
        }
    }

    /// Whether a participant already has this record. If two had it, their results would conflict.
    fn has_record(&self, id: Option<&str>) -> bool {
        self.participants.iter().any(|p| p.record() == id)
    }

    /// Checks that a participant can stand on its square.
    fn check_place(&self, it: &Participant) -> Result<(), String> {
        let Some(at) = it.position else { return Ok(()) };
        if !self.terrain.holds(at, it.side()) {
            return Err(format!("is outside of the grid of {} by {}", self.terrain.width, self.terrain.height));
        }
        if at.z == 0 && self.terrain.blocks(at, it.side()) {
            return Err("is an obstacle".to_owned());
        }
        if let Some(other) = walk::who_stands_at(self, it, at) {
            return Err(format!("is where {} stands", other.id));
        }
        Ok(())
    }

    /// Replaces the sources of conditions, which name a record by id, slug or name, by the id of the participant with
    /// that record.
    fn name_sources(&mut self) {
        let known = self.participants.iter().filter_map(|p| Some((p.record()?.to_owned(), p.id.clone())));
        let known: Vec<(String, String)> = known.collect();
        for participant in &mut self.participants {
            let named = |source: &Option<String>| {
                let source = source.as_deref()?;
                known.iter().find(|(record, _)| same(record, source)).map(|(_, id)| id.clone())
            };
            if participant.creature.conditions.iter().all(|c| named(&c.source).is_none()) {
                continue;
            }
            for condition in &mut Arc::make_mut(&mut participant.creature).conditions {
                condition.source = named(&condition.source).or_else(|| condition.source.take());
            }
        }
    }
}

impl Participant {
    /// The id of its record.
    pub(super) fn record(&self) -> Option<&str> {
        self.character_id.as_deref().or(self.npc_id.as_deref())
    }
}

/// Rolls initiative. A given bonus replaces the sheet's.
pub(super) fn rolled(creature: &Creature, bonus: Option<i32>, dice: &mut dyn Dice) -> Result<i32, Refusal> {
    let outcome = roll_initiative(creature, &Circumstances::default(), dice)?;
    Ok(match bonus {
        Some(bonus) => i32::try_from(outcome.die_result).unwrap_or(0).saturating_add(bonus),
        None => outcome.total,
    })
}

/// Attacks per attack action (SRD 5.1, "Extra Attack").
fn attacks(creature: &Creature) -> i32 {
    let classes = [Class::Barbarian, Class::Fighter, Class::Monk, Class::Paladin, Class::Ranger];
    let extra = classes.into_iter().map(|class| extra_attacks(class, creature.class_level(class))).max().unwrap_or(0);
    let extra = if extra == 0 && creature.has_feature("Extra Attack") { 1 } else { extra };
    i32::try_from(extra).unwrap_or(0) + 1
}
