//! Why an encounter rejects an action.

use super::ActionKind;
use crate::{dice::OutOfDice, resolve::RuleError};

/// Why nothing was decided. An action that the rules of the game forbid is not a refusal but an outcome marked
/// `impossible`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The encounter has ended.
    AlreadyEnded,
    /// It is somebody else's turn.
    NotYourTurn {
        /// Whose turn it is.
        current: Option<String>,
    },
    /// What the action needs is used up: `action`, `bonus_action`, `reaction`, `movement`, `death_save`, a spell slot
    /// or a resource.
    NoActionLeft {
        /// What is used up.
        what: String,
        /// The message.
        message: String,
    },
    /// A death saving throw was requested for a participant that is not dying.
    NotDying,
    /// No participant has this id.
    Unknown {
        /// The argument that names it.
        argument: &'static str,
        /// The id.
        id: String,
    },
    /// Nobody is left who could have a turn.
    NobodyLeft,
    /// An argument makes no sense.
    Argument {
        /// Path of the argument, such as `terrain/width`.
        argument: String,
        /// What is wrong.
        message: String,
    },
    /// Dice ran out or are invalid.
    Dice(OutOfDice),
}

impl Refusal {
    pub(super) fn argument(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Argument { argument: argument.into(), message: message.into() }
    }

    pub(super) fn too_many(argument: impl Into<String>, most: usize) -> Self {
        Self::argument(argument, format!("must have at most {most} entries"))
    }

    pub(super) fn missing(argument: &'static str, kind: ActionKind) -> Self {
        Self::argument(argument, format!("is required for `{}`", kind.name()))
    }

    pub(super) fn used_up(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self::NoActionLeft { what: what.into(), message: message.into() }
    }

    /// The stable code of the API's problem.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AlreadyEnded => "encounter_already_ended",
            Self::NotYourTurn { .. } => "not_your_turn",
            Self::NoActionLeft { .. } => "no_action_left",
            Self::NotDying => "not_dying",
            Self::NobodyLeft => "conflict",
            Self::Unknown { .. } | Self::Argument { .. } => "validation_failed",
            Self::Dice(_) => "invalid_dice",
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlreadyEnded => f.write_str("the encounter has ended"),
            Self::NotYourTurn { current: Some(current) } => write!(f, "it is the turn of {current}"),
            Self::NotYourTurn { current: None } => f.write_str("it is nobody's turn"),
            Self::NoActionLeft { message, .. } => f.write_str(message),
            Self::NotDying => f.write_str("only a dying participant makes death saving throws"),
            Self::Unknown { argument, id } => write!(f, "{argument}: nobody called \"{id}\" takes part"),
            Self::NobodyLeft => f.write_str("nobody is left who can take a turn"),
            Self::Argument { argument, message } => write!(f, "{argument}: {message}"),
            Self::Dice(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dice(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<OutOfDice> for Refusal {
    fn from(cause: OutOfDice) -> Self {
        Self::Dice(cause)
    }
}

impl From<RuleError> for Refusal {
    fn from(error: RuleError) -> Self {
        match error {
            RuleError::Dice(cause) => Self::Dice(cause),
            RuleError::Argument { argument, message } => Self::argument(argument, message),
            RuleError::Target { index, message } => Self::argument(format!("target_ids/{index}"), message),
            RuleError::NotDying => Self::NotDying,
        }
    }
}
