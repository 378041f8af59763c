//! The state of an encounter.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Lasting, Lighting, Position, Snapshot, Terrain};
use crate::{
    sheet::{Creature, Life},
    srd::same,
};

/// Whether an encounter is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EncounterStatus)]
pub enum Status {
    /// It is active.
    #[default]
    Active,
    /// It has ended.
    Ended,
}

/// How an encounter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = EncounterOutcome)]
pub enum EndOutcome {
    Victory,
    Defeat,
    Fled,
    Negotiated,
    Other,
}

/// What a participant did and suffered. Damage is counted after resistances, including damage beyond 0 hit points.
/// Healing is counted as the hit points regained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = ParticipantStatistics)]
pub struct Statistics {
    #[schema(required = true)]
    pub damage_dealt: i32,
    #[schema(required = true)]
    pub damage_taken: i32,
    #[schema(required = true)]
    pub healing_done: i32,
    #[schema(required = true)]
    pub attacks_made: u32,
    #[schema(required = true)]
    pub attacks_hit: u32,
}

/// What a participant has used in its turn (SRD 5.1, "The Order of Combat").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = TurnEconomy)]
pub struct Economy {
    /// The action is used.
    #[schema(required = true)]
    pub action: bool,
    /// The bonus action is used.
    #[schema(required = true)]
    pub bonus_action: bool,
    /// The reaction is used.
    #[schema(required = true)]
    pub reaction: bool,
    /// Feet moved.
    #[schema(required = true)]
    pub movement_used: i32,
    /// Attacks left in the attack action.
    #[schema(required = true)]
    pub attacks_left: i32,
    /// The number of dashes.
    #[schema(required = true)]
    pub dashes: i32,
    /// It disengaged.
    #[schema(required = true)]
    pub disengaged: bool,
    /// It dodges.
    #[schema(required = true)]
    pub dodging: bool,
    /// It helps.
    #[schema(required = true)]
    pub helping: bool,
    /// It has made its death saving throw in this turn.
    #[schema(required = true)]
    pub death_save: bool,
    /// It has cast a spell with its bonus action in its own turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick_spell: bool,
    /// It has cast a spell that is not a cantrip in its own turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub levelled_spell: bool,
    /// It has readied an action, until its next turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readied: bool,
}

/// A participant left another's reach, and may be attacked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Provocation {
    /// Who may attack.
    pub by: String,
    /// Who left.
    pub target: String,
    /// The square that was left.
    pub from: Position,
}

/// A creature in an encounter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = EncounterParticipant)]
pub struct Participant {
    /// The id in this encounter. `creature` has the same id.
    pub id: String,
    /// The id of its character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    /// The id of its NPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<String>,
    /// Its current sheet.
    #[schema(value_type = Creature)]
    pub creature: Arc<Creature>,
    /// Its state when it joined.
    #[schema(value_type = Snapshot)]
    pub initial: Arc<Snapshot>,
    /// Whether it is on the enemies' side.
    pub is_enemy: bool,
    /// Its initiative.
    pub initiative: i32,
    /// Decides the order of participants with the same initiative.
    pub initiative_bonus: i32,
    /// The last round in which it had its turn, lost it to surprise, or joined too late for it. 0 before the first. Nobody has two turns in a
    /// round, and nobody loses one, whatever happens to initiatives.
    #[serde(default, skip_serializing_if = "is_default")]
    pub acted_in: u32,
    /// It cannot act before the end of its first turn.
    pub surprised: bool,
    /// Only the game master knows of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Its square.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Attacks per attack action.
    pub attacks_per_action: i32,
    /// What it did and suffered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub statistics: Statistics,
    /// What it has used of its turn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub economy: Economy,
    /// How long its conditions last, if that is more than a number of rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lasting: Vec<Lasting>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Participant {
    /// Whether it has no record.
    #[must_use]
    pub const fn is_ephemeral(&self) -> bool {
        self.character_id.is_none() && self.npc_id.is_none()
    }

    /// Whether it is alive, dying, stable or dead.
    #[must_use]
    pub fn life(&self) -> Life {
        self.creature.life()
    }

    /// How long a condition lasts.
    #[must_use]
    pub fn lasts(&self, condition: &str) -> Option<&Lasting> {
        self.lasting.iter().find(|l| same(&l.condition, condition))
    }

    /// The number of squares along one side of its space (SRD 5.1, "Size").
    pub(super) fn side(&self) -> i32 {
        match self.creature.size_step() {
            Some(3) => 2,
            Some(4) => 3,
            Some(5) => 4,
            _ => 1,
        }
    }

    /// Whether it can take reactions.
    pub(super) fn can_react(&self) -> bool {
        !self.surprised && !self.economy.reaction && self.is_able()
    }

    /// Whether it is alive and can act.
    pub(super) fn is_able(&self) -> bool {
        self.life() == Life::Alive && !self.creature.is_incapacitated()
    }

    /// Its speed in feet: 0 if it is held or has five levels of exhaustion, half with two levels (SRD 5.1,
    /// "Exhaustion"), double with Haste.
    #[must_use]
    pub fn speed_now(&self) -> i32 {
        let it = &self.creature;
        let held = it.condition_rules().iter().any(|(rule, _)| rule.speed_zero);
        if held || it.exhaustion() >= 5 || self.life() != Life::Alive {
            return 0;
        }
        let speed = it.speed.max(0);
        let speed = if it.has_effect("Haste") { speed.saturating_mul(2) } else { speed };
        if it.exhaustion() >= 2 { speed / 2 } else { speed }
    }

    /// The feet of movement left in this turn.
    #[must_use]
    pub fn movement_left(&self) -> i32 {
        let all = self.speed_now().saturating_mul(self.economy.dashes.max(0).saturating_add(1));
        all.saturating_sub(self.economy.movement_used).max(0)
    }
}

/// A fight. [`Encounter::create`] makes it, and only [`Encounter::apply`] changes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encounter {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) status: Status,
    pub(super) round: u32,
    /// The participant whose turn it is, as an index into `participants`.
    pub(super) current: Option<usize>,
    /// The initiative with which that turn began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began_at: Option<i32>,
    /// In the order of joining.
    pub(super) participants: Vec<Participant>,
    /// Those with a record who left, as they were then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) departed: Vec<Participant>,
    pub(super) terrain: Arc<Terrain>,
    pub(super) lighting: Lighting,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) provoked: Vec<Provocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<EndOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) notes: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

impl Encounter {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it is active.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// The round, from 1.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// How it ended.
    #[must_use]
    pub const fn outcome(&self) -> Option<EndOutcome> {
        self.outcome
    }

    /// All participants, in the order of joining.
    #[must_use]
    pub fn participants(&self) -> &[Participant] {
        &self.participants
    }

    /// The participant with this id.
    #[must_use]
    pub fn participant(&self, id: &str) -> Option<&Participant> {
        self.participants.iter().find(|p| p.id == id)
    }

    /// The participant with this id, or somebody with a record who left.
    #[must_use]
    pub fn anybody(&self, id: &str) -> Option<&Participant> {
        self.participant(id).or_else(|| self.departed.iter().find(|p| p.id == id))
    }

    /// Those with a record who left. What the fight did to them is part of [`Encounter::diff`].
    #[must_use]
    pub fn departed(&self) -> &[Participant] {
        &self.departed
    }

    /// The participant whose turn it is.
    #[must_use]
    pub fn current(&self) -> Option<&Participant> {
        self.current.and_then(|at| self.participants.get(at))
    }

    /// Who may make an opportunity attack against whom.
    #[must_use]
    pub fn provoked(&self) -> &[Provocation] {
        &self.provoked
    }

    pub(super) fn at(&self, id: &str) -> Option<usize> {
        self.participants.iter().position(|p| p.id == id)
    }

    pub(super) fn one_mut(&mut self, id: &str) -> Option<&mut Participant> {
        self.participants.iter_mut().find(|p| p.id == id)
    }

    /// A name for this turn, so that features that work once per turn are used once.
    pub(super) fn turn_key(&self) -> String {
        format!("{}:{}:{}", self.id, self.round, self.current().map_or("", |p| p.id.as_str()))
    }
}
