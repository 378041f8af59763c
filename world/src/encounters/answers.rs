//! Types that describe the answers about encounters in the OpenAPI document. Other modules build the answers themselves, from the same
//! parts. Tests check that every answer matches these types.
#![expect(dead_code, reason = "they describe answers that are put together elsewhere")]

use rules::{
    encounter::{
        ActionKind, Changes, EndOutcome, Event, ParticipantUpdate, ParticipantView, Provocation, Status, Summary, View,
    },
    resolve::Outcome,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rules::answers::DiceOrigin;

/// An encounter's current state.
#[derive(ToSchema)]
pub struct EncounterView {
    #[serde(flatten)]
    #[schema(inline)]
    view: View,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
    /// The ids of hidden participants. Only game masters get this, and only if there are any.
    hidden: Option<Vec<String>>,
    /// The same value as `encounter_id`.
    id: Uuid,
    /// Rises with every change.
    version: i64,
}

/// The result of an action.
#[derive(ToSchema)]
pub struct ActionTold {
    /// The action that was done.
    action: ActionKind,
    /// What the dice decided, one outcome for each roll.
    outcomes: Vec<Outcome>,
    /// What happened, in order. Only game masters get this.
    #[schema(required = false)]
    events: Vec<Event>,
    /// True if nothing was written.
    preview: Option<bool>,
    /// The new state of every participant that the action changed.
    participants: Vec<ParticipantView>,
    /// The encounter's id.
    encounter_id: String,
    /// Whether the encounter is active or has ended.
    status: Status,
    /// The round, from 1.
    round: u32,
    /// The current participant's place in the turn order, from 1; 0 if it is nobody's turn. Only game masters get this in the
    /// turn of a hidden participant.
    #[schema(required = false)]
    turn: usize,
    /// The participant whose turn it is.
    #[schema(required = true)]
    current_participant_id: Option<String>,
    /// Who may make an opportunity attack against whom. Absent if nobody may.
    provoked: Option<Vec<Provocation>>,
    /// The text that everybody can read in the campaign's log.
    told: Option<String>,
    /// The action's position in the encounter's log.
    seq: i64,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
}

/// The result of ending an encounter.
#[derive(ToSchema)]
pub struct EndTold {
    /// The encounter's id.
    encounter_id: Uuid,
    /// How the encounter ended.
    outcome: EndOutcome,
    /// A short summary of the fight; null if none was requested.
    #[schema(required = true)]
    summary: Option<Summary>,
    /// Whether a commit would change any record.
    commit_required: bool,
    /// What the fight did to each participant, in the order of joining. Only game masters get enemies' updates.
    participant_updates: Vec<ParticipantUpdate>,
}

/// The result of a commit.
#[derive(ToSchema)]
pub struct CommitTold {
    /// The records that were written. Only game masters read about enemies' records.
    committed: Vec<Committed>,
    /// The participants whose records were not written, each with the reason.
    skipped: Vec<Skipped>,
    /// Requested names that are not participants.
    errors: Vec<CommitError>,
    /// True if nothing was written.
    dry_run: bool,
}

/// A participant whose record was written.
#[derive(ToSchema)]
pub struct Committed {
    /// The participant's id in the encounter.
    participant_id: String,
    /// What changed in the record.
    changes: Changes,
    /// The character's id.
    character_id: Option<String>,
    /// The character's name.
    character_name: Option<String>,
    /// The NPC's id.
    npc_id: Option<String>,
    /// The NPC's name.
    npc_name: Option<String>,
    /// True if the record had been edited since the fight began, so the differences were applied.
    merged: Option<bool>,
}

/// A participant whose record was not written.
#[derive(ToSchema)]
pub struct Skipped {
    /// The participant's id in the encounter.
    participant_id: String,
    /// The reason.
    reason: SkipReason,
}

/// Why a record was not written.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum SkipReason {
    /// The participant has no record.
    Ephemeral,
    /// The request did not name it.
    Excluded,
    /// It has already been committed.
    AlreadyCommitted,
    /// Its record was deleted.
    NotFound,
}

/// A requested name that is not a participant.
#[derive(ToSchema)]
pub struct CommitError {
    /// The name as it was given.
    character_id: String,
    /// What is wrong with it.
    error: String,
}
