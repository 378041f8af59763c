//! The answer of a rules turn.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::ruling::Decided;
use crate::turns::{
    start::{TurnAnswer, TurnEnded},
    talk::Talk,
};
use llm::Usage;
use world::rules::answers::ResolvedOutcome;

/// The answer to a client.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Resolution {
    /// The outcome: check, components, dice, success, damage, changes.
    #[schema(value_type = Object)]
    pub parsed: Box<ResolvedOutcome>,
    /// The outcome in seven lines, for a narrator.
    pub raw: String,
    /// The tool that the model chose.
    pub tool: &'static str,
    /// The arguments that the model chose.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// The narration of the outcome. Only the command `do` has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    pub usage: Usage,
    pub turn_id: Uuid,
    /// The text that the fight's log already has.
    #[serde(skip)]
    pub told: Option<String>,
    /// What to ask the player. If set, nothing was done.
    #[serde(skip)]
    pub unclear: Option<String>,
}

impl TurnAnswer for Resolution {
    fn ended(&self) -> Option<TurnEnded> {
        Some(TurnEnded::succeeded(self.turn_id))
    }
}

impl Resolution {
    /// The decision in a turn in progress.
    #[must_use]
    pub fn of(decided: Decided, narration: Option<String>, talk: &Talk<'_>) -> Self {
        let Decided { tool, arguments, raw, outcome, told, unclear } = decided;
        Self { parsed: outcome, raw, tool, arguments, narration, usage: talk.usage, turn_id: talk.id, told, unclear }
    }
}
