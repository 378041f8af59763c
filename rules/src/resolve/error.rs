//! What can be wrong with a request to resolve something.

use crate::{dice::OutOfDice, resolve::Outcome};

/// Why nothing was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// No die fell.
    Dice(OutOfDice),
    /// An argument cannot be meant: its name and what is wrong with it.
    Argument {
        /// Path of the argument, such as `damage/dice`.
        argument: &'static str,
        /// What is wrong, for its writer.
        message: String,
    },
    /// A target that the spell does not reach: its place among the targets, and why.
    Target {
        /// From 0.
        index: usize,
        /// Why, for who chose it.
        message: String,
    },
    /// Who should make a death saving throw is not dying.
    NotDying,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dice(cause) => cause.fmt(f),
            Self::Argument { argument, message } => write!(f, "{argument}: {message}"),
            Self::Target { index, message } => write!(f, "target {index}: {message}"),
            Self::NotDying => f.write_str("only who is dying makes death saving throws"),
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

/// Why a resolver stopped before its end.
pub(crate) enum Stop {
    /// It cannot be done, and why.
    Impossible(String),
    /// It was asked wrongly.
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

/// Makes an outcome of what cannot be done.
pub(crate) fn settle(result: Result<Outcome, Stop>) -> Result<Outcome, RuleError> {
    match result {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Impossible(reason)) => Ok(super::impossible(&reason)),
        Err(Stop::Error(error)) => Err(error),
    }
}
