//! What is told of encounters, as types: the OpenAPI document describes answers by these. The answers themselves are put together where
//! something happens, from the same parts; tests hold every one of them to the document.
#![expect(dead_code, reason = "they describe answers that are put together elsewhere")]

use rules::{
    encounter::{
        ActionKind, Changes, EndOutcome, Event, ParticipantUpdate, ParticipantView, Provocation, Status, Summary, View,
    },
    resolve::{Outcome, StateChange},
};
use utoipa::ToSchema;
use uuid::Uuid;

/// Whose dice fell. Nothing of it is there when none did.
#[derive(ToSchema)]
pub struct DiceOrigin {
    /// `server` (the fair stream; in a preview dice that do not count), `frontend`, `manual` (given dice) or `seeded`.
    source: Option<String>,
    /// The fair stream.
    seed_id: Option<Uuid>,
    /// Which roll of that stream it is.
    counter: Option<i64>,
    /// Dice that were given and not needed.
    dice_unused: Option<Vec<u32>>,
}

/// An encounter as it stands.
#[derive(ToSchema)]
pub struct EncounterView {
    #[serde(flatten)]
    #[schema(inline)]
    view: View,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
    /// Whom players do not know of, by id; for game masters alone, if there is anybody.
    hidden: Option<Vec<String>>,
    /// The same as `encounter_id`.
    id: Uuid,
    /// Rises with every change.
    version: i64,
}

/// What came of an action.
#[derive(ToSchema)]
pub struct ActionTold {
    /// What was done.
    action: ActionKind,
    /// What the dice decided, one for each roll that was made.
    outcomes: Vec<Outcome>,
    /// What happened, in order. A player is not told it.
    #[schema(required = false)]
    events: Vec<Event>,
    /// Nothing was written.
    preview: Option<bool>,
    /// Everybody whom the action changed, as they stand now.
    participants: Vec<ParticipantView>,
    /// The encounter's id.
    encounter_id: String,
    /// Whether the encounter goes on.
    status: Status,
    /// The round, from 1.
    round: u32,
    /// The place in the order of whose turn it is, from 0. A player is not told it while it is somebody's that players do not know of.
    #[schema(required = false)]
    turn: usize,
    /// Whose turn it is.
    #[schema(required = true)]
    current_participant_id: Option<String>,
    /// Who may attack whom with a reaction, when there is anybody.
    provoked: Option<Vec<Provocation>>,
    /// What the campaign's log says of it, to all.
    told: Option<String>,
    /// The action's place in the encounter's log.
    seq: i64,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
}

/// How an encounter ended.
#[derive(ToSchema)]
pub struct EndTold {
    /// The encounter's id.
    encounter_id: Uuid,
    /// How it ended.
    outcome: EndOutcome,
    /// The fight in a few lines; null if none was wanted.
    #[schema(required = true)]
    summary: Option<Summary>,
    /// Whether a commit would change any record.
    commit_required: bool,
    /// What the fight did to everybody, in the order they joined.
    participant_updates: Vec<ParticipantUpdate>,
}

/// What was written into the records.
#[derive(ToSchema)]
pub struct CommitTold {
    /// The records that were written.
    committed: Vec<Committed>,
    /// Those that were not, each with the reason.
    skipped: Vec<Skipped>,
    /// Names that were asked for and take no part.
    errors: Vec<CommitError>,
    /// Nothing was written.
    dry_run: bool,
}

/// A record that took part and was written.
#[derive(ToSchema)]
pub struct Committed {
    /// Id in the encounter.
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
    /// The record had been edited meanwhile and took the difference.
    merged: Option<bool>,
}

/// Somebody whose record was not written.
#[derive(ToSchema)]
pub struct Skipped {
    /// Id in the encounter.
    participant_id: String,
    /// Why.
    reason: SkipReason,
}

/// Why a record was not written.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum SkipReason {
    /// There is no record behind it.
    Ephemeral,
    /// It was not asked for.
    Excluded,
    /// It was written before.
    AlreadyCommitted,
    /// Its record is gone.
    NotFound,
}

/// A name that takes no part.
#[derive(ToSchema)]
pub struct CommitError {
    /// The name as it was given.
    character_id: String,
    /// What is wrong with it.
    error: String,
}

/// What came of a resolver, a rest among them.
#[derive(ToSchema)]
pub struct ResolvedOutcome {
    #[serde(flatten)]
    #[schema(inline)]
    outcome: Outcome,
    /// What has to be changed, in order, and whether it was.
    effects: Option<Vec<AppliedChange>>,
    /// What it led to, such as a saving throw to keep concentrating.
    followed_by: Option<Vec<Outcome>>,
    /// Nothing was written.
    preview: Option<bool>,
    /// The encounter it happened in, if that decided it.
    encounter_id: Option<Uuid>,
    /// Its round.
    round: Option<u32>,
    /// Its turn, by its place in the order.
    turn: Option<usize>,
    /// What the campaign's log says of it, to all.
    told: Option<String>,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
}

/// A change of a creature.
#[derive(ToSchema)]
pub struct AppliedChange {
    #[serde(flatten)]
    change: StateChange,
    /// Whether it was made.
    applied: bool,
}
