//! The answers about encounters.

use rules::{
    encounter::{
        ActionKind, Changes, EndOutcome, Event, ParticipantUpdate, ParticipantView, Provocation, SeenCombatant,
        SeenView, Status, Summary, View,
    },
    resolve::Outcome,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{dice::service::DiceOrigin, rules::answers::OutcomeShown};

/// An encounter's current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EncounterView {
    #[serde(flatten)]
    #[schema(inline, value_type = View)]
    pub fight: FightShown,
    #[serde(flatten)]
    #[schema(inline)]
    pub dice: DiceOrigin,
    /// The ids of hidden participants. Only game masters get this, and only if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub hidden: Vec<String>,
    /// The same value as `encounter_id`.
    pub id: Uuid,
    /// Rises with every change.
    pub version: i64,
}

/// A fight as its reader sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FightShown {
    /// To its game master.
    Whole(Box<View>),
    /// To everybody else.
    Seen(Box<SeenView>),
}

/// What every reader is shown of a participant, and the rest where the reader sees it.
pub struct CombatantShown<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub is_enemy: bool,
    pub status: &'static str,
    pub initiative: Option<i32>,
    /// Their names.
    pub conditions: Vec<&'a str>,
    pub whole: Option<&'a ParticipantView>,
}

impl<'a> From<&'a ParticipantView> for CombatantShown<'a> {
    fn from(it: &'a ParticipantView) -> Self {
        Self {
            id: &it.id,
            name: &it.name,
            is_enemy: it.is_enemy,
            status: it.status,
            initiative: it.initiative,
            conditions: it.conditions.iter().flatten().map(|condition| condition.name()).collect(),
            whole: Some(it),
        }
    }
}

impl<'a> From<&'a SeenCombatant> for CombatantShown<'a> {
    fn from(it: &'a SeenCombatant) -> Self {
        match it {
            SeenCombatant::Whole(it) => Self::from(&**it),
            SeenCombatant::Enemy(it) => Self {
                id: &it.id,
                name: &it.name,
                is_enemy: it.is_enemy,
                status: it.status,
                initiative: it.initiative,
                conditions: it.conditions.iter().flatten().map(String::as_str).collect(),
                whole: None,
            },
        }
    }
}

impl FightShown {
    /// The participants in turn order.
    #[must_use]
    pub fn participants(&self) -> Vec<CombatantShown<'_>> {
        match self {
            Self::Whole(view) => view.participants.iter().flatten().map(CombatantShown::from).collect(),
            Self::Seen(view) => view.participants.iter().flatten().map(CombatantShown::from).collect(),
        }
    }

    /// The id of the participant who has the turn, if the reader knows of it.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        match self {
            Self::Whole(view) => view.current_participant_id.as_deref(),
            Self::Seen(view) => view.current_participant_id.as_deref(),
        }
    }

    /// The fight's name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let name = match self {
            Self::Whole(view) => view.name.as_deref(),
            Self::Seen(view) => view.name.as_deref(),
        };
        name.filter(|name| !name.is_empty())
    }

    /// The round, from 1.
    #[must_use]
    pub fn round(&self) -> u32 {
        match self {
            Self::Whole(view) => view.round,
            Self::Seen(view) => view.round,
        }
    }

    /// Whether it is active or has ended.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Whole(view) => view.status,
            Self::Seen(view) => view.status,
        }
    }

    /// Puts the name and notes in it as clients edited them. Players do not get the notes.
    pub(super) fn edited(&mut self, name: &str, notes: Option<&str>) {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        match self {
            Self::Whole(view) => {
                view.name = name.or(view.name.take());
                view.notes = notes.map(str::to_owned).or(view.notes.take());
            }
            Self::Seen(view) => view.name = name.or(view.name.take()),
        }
    }

    /// Adds warnings to the reader who caused them.
    pub(super) fn warn(&mut self, warnings: Vec<String>) {
        match self {
            Self::Whole(view) => view.warnings.extend(warnings),
            Self::Seen(view) => view.warnings.extend(warnings),
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionTold {
    /// The action that was done.
    pub action: ActionKind,
    /// What the dice decided, one outcome for each roll.
    #[schema(value_type = Vec<Outcome>)]
    pub outcomes: Vec<OutcomeShown>,
    /// What happened, in order. Only game masters get this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Vec<Event>)]
    pub events: Option<Vec<Event>>,
    /// True if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<bool>,
    #[serde(flatten)]
    #[schema(inline)]
    pub standing: Standing,
    /// The text that everybody can read in the campaign's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The action's position in the encounter's log.
    pub seq: i64,
    #[serde(flatten)]
    #[schema(inline)]
    pub dice: DiceOrigin,
}

/// How a fight stands after an action.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Standing {
    /// The new state of every participant that the action changed.
    #[schema(value_type = Vec<ParticipantView>)]
    pub participants: Vec<SeenCombatant>,
    /// The encounter's id.
    pub encounter_id: String,
    /// Whether the encounter is active or has ended.
    pub status: Status,
    /// The round, from 1.
    pub round: u32,
    /// The current participant's place in the turn order, from 1; 0 if it is nobody's turn. Only game masters get this in the
    /// turn of a hidden participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = usize)]
    pub turn: Option<usize>,
    /// The participant whose turn it is.
    #[schema(required = true)]
    pub current_participant_id: Option<String>,
    /// Who may make an opportunity attack against whom. Absent if nobody may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Provocation>>)]
    pub provoked: Vec<Provocation>,
    /// The ids of hidden participants. Only game masters get this, and only if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub hidden: Vec<String>,
}

/// The result of ending an encounter.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EndTold {
    /// The encounter's id.
    pub encounter_id: Uuid,
    /// How the encounter ended.
    pub outcome: EndOutcome,
    /// A short summary of the fight; null if none was requested.
    #[schema(required = true)]
    pub summary: Option<Summary>,
    /// Whether a commit would change any record.
    pub commit_required: bool,
    /// What the fight did to each participant, in the order of joining. Only game masters get enemies' updates.
    pub participant_updates: Vec<ParticipantUpdate>,
}

/// The result of a commit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CommitTold {
    /// The records that were written. Only game masters read about enemies' records.
    pub committed: Vec<Committed>,
    /// The participants whose records were not written, each with the reason.
    pub skipped: Vec<Skipped>,
    /// Requested names that are not participants.
    pub errors: Vec<CommitError>,
    /// True if nothing was written.
    pub dry_run: bool,
}

/// A participant whose record was written.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Committed {
    /// The participant's id in the encounter.
    pub participant_id: String,
    /// What changed in the record.
    pub changes: Changes,
    /// The character's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    /// The character's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character_name: Option<String>,
    /// The NPC's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<String>,
    /// The NPC's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_name: Option<String>,
    /// True if the record had been edited since the fight began, so the differences were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<bool>,
}

/// A participant whose record was not written.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Skipped {
    /// The participant's id in the encounter.
    pub participant_id: String,
    /// The reason.
    pub reason: SkipReason,
}

/// Why a record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The participant has no record.
    Ephemeral,
    /// The request did not name it.
    Excluded,
    /// It has already been committed.
    AlreadyCommitted,
    /// Its record was deleted.
    NotFound,
    /// Its record is locked for AI tools (`ai_lock`).
    Locked,
}

/// A requested name that is not a participant.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CommitError {
    /// The name as it was given.
    pub character_id: String,
    /// What is wrong with it.
    pub error: String,
}
