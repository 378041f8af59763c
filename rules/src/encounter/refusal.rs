//! Why an encounter does not do what it was asked to.

use super::ActionKind;
use crate::{dice::OutOfDice, resolve::RuleError};

/// Why nothing was decided. What cannot be done in the game is no refusal but an outcome marked `impossible`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The encounter has ended.
    AlreadyEnded,
    /// It is somebody else's turn.
    NotYourTurn {
        /// Whose turn it is.
        current: Option<String>,
    },
    /// Nothing is left to do it with in this turn: `action`, `bonus_action`, `reaction`, `movement`, `death_save`,
    /// a spell slot or a resource.
    NoActionLeft {
        /// What is used up.
        what: String,
        /// In a sentence.
        message: String,
    },
    /// Who should make a death saving throw is not dying.
    NotDying,
    /// Nobody of this id takes part.
    Unknown {
        /// The argument that names it.
        argument: &'static str,
        /// The id.
        id: String,
    },
    /// Nobody is left who could have a turn.
    NobodyLeft,
    /// An argument cannot be meant.
    Argument {
        /// Path of the argument, such as `terrain/width`.
        argument: String,
        /// What is wrong, for its writer.
        message: String,
    },
    /// No die fell.
    Dice(OutOfDice),
}

impl Refusal {
    pub(super) fn argument(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Argument { argument: argument.into(), message: message.into() }
    }

    pub(super) fn too_many(argument: impl Into<String>, most: usize) -> Self {
        Self::argument(argument, format!("at most {most} entries"))
    }

    pub(super) fn missing(argument: &'static str, kind: ActionKind) -> Self {
        Self::argument(argument, format!("`{}` needs it", kind.name()))
    }

    pub(super) fn used_up(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self::NoActionLeft { what: what.into(), message: message.into() }
    }

    /// The stable code of the API's problems.
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
            Self::NotDying => f.write_str("only who is dying makes death saving throws"),
            Self::Unknown { argument, id } => write!(f, "{argument}: nobody called \"{id}\" takes part"),
            Self::NobodyLeft => f.write_str("nobody is left who could have a turn"),
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
