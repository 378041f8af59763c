//! Types that describe the answers of resolvers in the OpenAPI document. Other modules build the answers themselves, from
//! the same parts. Tests check that every answer matches these types.
#![expect(dead_code, reason = "they describe answers that are put together elsewhere")]

use rules::resolve::{Outcome, StateChange};
use utoipa::ToSchema;
use uuid::Uuid;

/// Where the dice came from. Absent if no dice were rolled.
#[derive(ToSchema)]
pub struct DiceOrigin {
    /// `server` (the fair stream, or throwaway dice in a preview), `frontend`, `manual` (given dice) or `seeded`.
    source: Option<String>,
    /// The id of the fair stream.
    seed_id: Option<Uuid>,
    /// The position of the roll in that stream.
    counter: Option<i64>,
    /// Given dice that were not needed.
    dice_unused: Option<Vec<u32>>,
}

/// The result of a resolver or a rest.
#[derive(ToSchema)]
pub struct ResolvedOutcome {
    #[serde(flatten)]
    #[schema(inline)]
    outcome: Outcome,
    /// The necessary changes, in order, and whether each was applied.
    effects: Option<Vec<AppliedChange>>,
    /// Outcomes that followed from it, such as a saving throw to keep concentrating.
    followed_by: Option<Vec<Outcome>>,
    /// True if nothing was written.
    preview: Option<bool>,
    /// The encounter in which it happened, if any.
    encounter_id: Option<Uuid>,
    /// The round of that encounter.
    round: Option<u32>,
    /// The current participant's place in the turn order of that encounter.
    turn: Option<usize>,
    /// The text that everybody can read in the campaign's log.
    told: Option<String>,
    #[serde(flatten)]
    #[schema(inline)]
    dice: DiceOrigin,
}

/// A change to a creature.
#[derive(ToSchema)]
pub struct AppliedChange {
    #[serde(flatten)]
    change: StateChange,
    /// Whether it was applied.
    applied: bool,
}
