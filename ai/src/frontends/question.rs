//! What the server asks of a frontend, and what comes of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use base::error::{Code, Error, Result};

/// What the server asks of a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// To roll dice. The answer is `roll_result`.
    ExecuteRoll,
    /// To report its fights. The answer is `combat_state`, which is stored before it counts as an answer.
    CombatStateRefresh,
}

impl Asked {
    /// The type of the frame.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Asked::ExecuteRoll => "execute_roll",
            Asked::CombatStateRefresh => "combat_state_refresh",
        }
    }
}

/// A tool's question to the frontend.
#[derive(Clone, Debug)]
pub struct Question {
    pub asked: Asked,
    pub data: Value,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    Silent,
    Gone,
    /// The frontend's own error text.
    Refused(String),
}

impl Failure {
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Failure::Silent => "silent",
            Failure::Gone => "gone",
            Failure::Refused(_) => "refused",
        }
    }

    /// The same as an error for the model or the client that called the tool.
    pub(super) fn error(self, patience: Duration) -> Error {
        match self {
            Failure::Silent => Error::new(
                Code::FrontendTimeout,
                format!("The frontend did not answer within {} seconds.", patience.as_secs_f32()),
            ),
            Failure::Gone => Error::new(
                Code::FrontendFailed,
                "The frontend disconnected before it answered. While no frontend is connected, the server rolls.",
            ),
            Failure::Refused(words) => {
                Error::new(Code::FrontendFailed, format!("The frontend could not do it: {words}"))
            }
        }
    }
}

/// A frontend's answer.
pub type Answer = Result<Value, Failure>;

/// The result of a tool's question.
#[derive(Debug)]
pub enum Heard {
    /// No frontend is connected. `left` says whether one was.
    Nobody {
        left: bool,
    },
    /// There was nothing to ask about.
    Idle,
    Told(Value),
    Failed(Error),
}
