//! What can be wrong with a request to resolve something.

use crate::{dice::OutOfDice, resolve::Outcome};

/// Why nothing was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// Dice ran out or are invalid.
    Dice(OutOfDice),
    /// An argument makes no sense.
    Argument {
        /// The path of the argument, such as `damage/dice`.
        argument: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A target that the spell cannot affect.
    Target {
        /// Its index among the targets, from 0.
        index: usize,
        /// Why.
        message: String,
    },
    /// A death saving throw was requested for a creature that is not dying.
    NotDying,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dice(cause) => cause.fmt(f),
            Self::Argument { argument, message } => write!(f, "{argument}: {message}"),
            Self::Target { index, message } => write!(f, "target {index}: {message}"),
            Self::NotDying => f.write_str("only a dying creature makes death saving throws"),
        }
    }
}

impl std::error::Error for RuleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dice(cause) => Some(cause),
            Self::Argument { .. } | Self::Target { .. } | Self::NotDying => None,
        }
    }
}

impl From<OutOfDice> for RuleError {
    fn from(cause: OutOfDice) -> Self {
        Self::Dice(cause)
    }
}

/// Why a resolver stopped early.
pub(crate) enum Stop {
    /// The rules forbid it. The text says why.
    Impossible(String),
    /// The request was wrong.
    Error(RuleError),
}

impl From<RuleError> for Stop {
    fn from(error: RuleError) -> Self {
        Self::Error(error)
    }
}

impl From<OutOfDice> for Stop {
    fn from(cause: OutOfDice) -> Self {
        Self::Error(cause.into())
    }
}

/// Turns [`Stop::Impossible`] into an outcome.
pub(crate) fn settle(result: Result<Outcome, Stop>) -> Result<Outcome, RuleError> {
    match result {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Impossible(reason)) => Ok(super::impossible(&reason)),
        Err(Stop::Error(error)) => Err(error),
    }
}
