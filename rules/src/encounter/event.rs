//! What happened in an encounter: results, never dice. The log of a fight is a list of these events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ActionKind, Cast, Cost, EndOutcome, Lasting, Participant, Position};
use crate::resolve::StateChange;

/// What a participant does with its turn besides using it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnStance)]
pub enum Stance {
    /// It can move its speed once more.
    Dash,
    /// It does not provoke opportunity attacks.
    Disengage,
    /// It dodges.
    Dodge,
    /// It helps somebody.
    Help,
    /// It has made its death saving throw.
    DeathSave,
    /// It waits for something, to act with its reaction.
    Ready,
    /// It gets another action (Action Surge).
    Surge,
}

/// One thing that happened. Participants are named by id. An event about an unknown participant changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each says what it is; their fields are those of the state")]
#[schema(as = EncounterEvent)]
pub enum Event {
    /// Somebody joined after the beginning.
    Joined { participant: Box<Participant> },
    /// Somebody left. What the fight did to one with a record stays known.
    Left { participant: String },
    /// An initiative was rolled or set.
    Initiative { participant: String, initiative: i32 },
    /// A turn began. The participant has its action, bonus action, reaction and movement again.
    TurnStarted { participant: String, round: u32 },
    /// A turn ended, or was lost to surprise. The participant is no longer surprised.
    TurnEnded { participant: String, round: u32 },
    /// Nobody is left who could have a turn.
    NobodyLeft,
    /// Part of a turn was used. `attacks_left` is the number of attacks left in the attack action.
    Spent {
        participant: String,
        cost: Cost,
        attacks_left: i32,
        /// Set if it was used for a spell that limits other spells in the same turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cast: Option<Cast>,
    },
    /// A participant was hidden from players, or shown to them.
    Hid { participant: String, hidden: bool },
    /// Dash, disengage and the like.
    Took { participant: String, stance: Stance },
    /// A participant moved and used this much movement.
    Moved {
        participant: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Position>,
        cost_ft: i32,
    },
    /// `target` left the reach of `by`, which may attack it with its reaction as if it still stood on this square.
    Provoked { by: String, target: String, from: Position },
    /// Attacks were made; `hit` of them hit.
    Attacked { by: String, target: String, made: u32, hit: u32 },
    /// A sheet changed, because of `by` if somebody caused it.
    Changed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        change: StateChange,
    },
    /// How long an active condition lasts.
    Lasts { participant: String, lasting: Lasting },
    /// A game master overrode the rules of a turn for an action.
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
