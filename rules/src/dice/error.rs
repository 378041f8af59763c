//! Errors in formulas: where, what was expected there, and what to write instead.
//!
//! People read these texts, and so do models that correct themselves, so each says what to do next. An error never
//! repeats the formula, because that may be long and the sender knows it.

use std::{borrow::Cow, fmt};

use super::OutOfDice;

/// Why a formula cannot be parsed or rolled.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaError {
    /// The kind of error, for programs.
    pub kind: FormulaErrorKind,
    /// The number of characters (Unicode scalar values, not bytes) before the error; 0 is the beginning.
    pub position: usize,
    /// What would be valid there; empty if nothing would be, for example because a limit was reached.
    pub expected: Cow<'static, str>,
    /// What is wrong, as a sentence.
    pub message: Cow<'static, str>,
    /// What to write instead, if that is known.
    pub hint: Option<Cow<'static, str>>,
}

/// What kind of error it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormulaErrorKind {
    /// There is no formula: only white space or a comment.
    Empty,
    /// Longer than [`Limits::bytes_max`](super::Limits::bytes_max).
    TooLong,
    /// More nested brackets than [`Limits::depth_max`](super::Limits::depth_max).
    TooDeep,
    /// The text is incomplete, or contains something that does not belong there.
    Syntax,
    /// A name that is not a function.
    UnknownFunction,
    /// A function with too many or too few arguments.
    Arguments,
    /// A modifier that does not exist for these dice, or is incomplete.
    Modifier,
    /// A variable that the roller does not have.
    UnknownVariable,
    /// A number of dice that is not a whole number of at least 0 (at least 1 if it is written as a number).
    Count,
    /// A number of faces that is not a whole number of at least 1, or is above the limit.
    Faces,
    /// More dice than a term or a formula may roll, with explosions and rerolls.
    TooManyDice,
    /// A division (or remainder) by zero.
    DivisionByZero,
    /// A result that is not a finite number.
    NotFinite,
    /// The given dice ran out or do not match.
    Dice(OutOfDice),
}

impl FormulaErrorKind {
    /// A short name for programs and logs, such as `too_many_dice`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::TooDeep => "too_deep",
            Self::Syntax => "syntax",
            Self::UnknownFunction => "unknown_function",
            Self::Arguments => "arguments",
            Self::Modifier => "modifier",
            Self::UnknownVariable => "unknown_variable",
            Self::Count => "count",
            Self::Faces => "faces",
            Self::TooManyDice => "too_many_dice",
            Self::DivisionByZero => "division_by_zero",
            Self::NotFinite => "not_finite",
            Self::Dice(_) => "dice",
        }
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at character {})", self.message, self.position)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        match &self.hint {
            Some(hint) => write!(f, ". {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FormulaError {}

/// A position in the source, in bytes.
pub(super) type At = u32;

/// An error whose position is still in bytes of the source. The formula converts it to a [`FormulaError`].
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: FormulaErrorKind,
    pub(super) at: At,
    pub(super) expected: Cow<'static, str>,
    pub(super) message: Cow<'static, str>,
    pub(super) hint: Option<Cow<'static, str>>,
}

/// The error is boxed, because every step of a roll passes a result on and errors are rare.
pub(super) type Outcome<T> = Result<T, Box<Fault>>;

impl Fault {
    #[cold]
    pub(super) fn new(kind: FormulaErrorKind, at: At, message: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self { kind, at, expected: Cow::Borrowed(""), message: message.into(), hint: None })
    }

    pub(super) fn expected(mut self: Box<Self>, expected: impl Into<Cow<'static, str>>) -> Box<Self> {
        self.expected = expected.into();
        self
    }

    pub(super) fn hint(mut self: Box<Self>, hint: impl Into<Cow<'static, str>>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Removes a number that was computed at the roll, because it would reveal the dice.
    #[cold]
    pub(super) fn untold(mut self: Box<Self>) -> Box<Self> {
        match self.kind {
            FormulaErrorKind::Count => self.message = "the computed number of dice is not possible".into(),
            FormulaErrorKind::Faces => self.message = "a die with the computed number of faces cannot be rolled".into(),
            FormulaErrorKind::TooManyDice => self.message = "the computed number of dice is more than allowed".into(),
            _ => {}
        }
        self
    }

    /// Converts it to the public error, with the position in characters.
    #[cold]
    pub(super) fn locate(self, source: &str) -> FormulaError {
        let at = self.at as usize;
        let position = source.char_indices().take_while(|(byte, _)| *byte < at).count();
        FormulaError { kind: self.kind, position, expected: self.expected, message: self.message, hint: self.hint }
    }
}
