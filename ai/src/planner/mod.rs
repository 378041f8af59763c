//! The planner turns a player's free text into exactly one allowed and validated command.
//!
//! - [`act`] handles a text from beginning to end. [`scene`] finds who acts and where, from the server's [`memory`] or the database;
//!   [`open`] begins the turn.
//! - [`turn`] is its work: [`ask`] gets the plan, [`dispatch`] carries it out, [`answer`] is the answer. [`http`] has the route.
//! - [`prompt`] is the text for the model; [`plan`] reads the reply; [`gates`] are the checks that a plan has to pass.
//! - [`evaluate`] asks a model to plan sample sentences and counts how many plans are right.
//!
//! The model proposes a name and some arguments. The server decides everything else. Only the outcome `executed` changes the game.
//! Players read nothing that a model wrote except a command's result and the cleaned sentence of a refusal. The rationale goes to
//! the log at `debug` and nowhere else. No transaction is open while the model works.

pub mod act;
pub mod answer;
mod ask;
mod dispatch;
pub mod evaluate;
pub mod gates;
pub mod http;
pub mod memory;
mod open;
pub mod plan;
pub mod prompt;
pub mod request;
mod scene;
mod turn;

use serde::Serialize;
use utoipa::ToSchema;

use base::error::Code;

/// The most characters of a player's text.
pub const TEXT_CHARS_MAX: usize = 2000;
/// Below this confidence, the player is asked what they meant.
const SURE: f64 = 0.5;

/// Why a plan is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The reply has no valid plan.
    Parse,
    /// The plan names a command that is not allowed here.
    Allowlist,
    /// The plan breaks the rules that `failed_predicates` lists.
    Predicate,
    /// The plan's arguments are invalid for the command.
    ArgValidation,
    /// The model says that no command fits.
    Unsupported,
    /// The model took too long. The tenant's fallback was carried out instead.
    Timeout,
}

impl Reason {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Allowlist => "allowlist",
            Self::Predicate => "predicate",
            Self::ArgValidation => "arg_validation",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
        }
    }
}

/// Whether a plan's command is the model's way to say that no command fits.
#[must_use]
pub fn is_refusal(command: &str) -> bool {
    matches!(command, "error" | "none")
}

/// Why there is no plan. Requests that waited for the same plan get the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Unreadable(plan::Unreadable),
    Model(Code),
    /// The request that asked the model was abandoned.
    Abandoned,
}
