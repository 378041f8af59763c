//! What happened in an encounter: results, never dice. The log of a fight is a list of these.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ActionKind, Cast, Cost, EndOutcome, Lasting, Participant, Position};
use crate::resolve::StateChange;

/// What somebody does with a turn beside spending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnStance)]
pub enum Stance {
    /// It has its speed once more.
    Dash,
    /// It provokes nobody.
    Disengage,
    /// It dodges.
    Dodge,
    /// It helps somebody.
    Help,
    /// It has made its death saving throw.
    DeathSave,
    /// It waits for something, to act with its reaction.
    Ready,
    /// It has another action (Action Surge).
    Surge,
}

/// One thing that happened. Participants are named by id; an event about nobody changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each says what it is; their fields are those of the state")]
#[schema(as = EncounterEvent)]
pub enum Event {
    /// Somebody joined after the beginning.
    Joined { participant: Box<Participant> },
    /// An initiative.
    Initiative { participant: String, initiative: i32 },
    /// A turn began: it has its action, bonus action, reaction and movement again.
    TurnStarted { participant: String, round: u32 },
    /// A turn ended: what lasts rounds has one less, and who was surprised no longer is.
    TurnEnded { participant: String },
    /// Nobody is left who could have a turn.
    NobodyLeft,
    /// Something of a turn was spent; so many attacks of the attack action are left.
    Spent {
        participant: String,
        cost: Cost,
        attacks_left: i32,
        /// It paid for a spell that leaves less to be cast in the same turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cast: Option<Cast>,
    },
    /// Players know of it from now on, or no longer do.
    Hid { participant: String, hidden: bool },
    /// Dash, disengage and the like.
    Took { participant: String, stance: Stance },
    /// It moved, for so many feet of its movement.
    Moved {
        participant: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Position>,
        cost_ft: i32,
    },
    /// `target` left the reach of `by` from this square: `by` may attack it with its reaction, as if it still stood there.
    Provoked { by: String, target: String, from: Position },
    /// So many attacks were made, and so many hit.
    Attacked { by: String, target: String, made: u32, hit: u32 },
    /// A sheet changed, through `by` if somebody did it.
    Changed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        change: StateChange,
    },
    /// How long a condition that is in force lasts.
    Lasts { participant: String, lasting: Lasting },
    /// A game master overrode the turn's rules for an action.
    Overridden {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        participant: Option<String>,
        action: ActionKind,
    },
    /// The encounter ended.
    Ended {
        outcome: EndOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<String>,
    },
}
