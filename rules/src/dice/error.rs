//! What is wrong with a formula: where, what was expected there, and what to write instead.
//!
//! The texts are read by people and by language models that correct themselves, so each says what to do next.
//! It never repeats the formula: that may be long and is known to whoever sent it.

use std::{borrow::Cow, fmt};

use super::OutOfDice;

/// A formula that cannot be read or cannot be rolled.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaError {
    /// What kind of error it is, for programs.
    pub kind: FormulaErrorKind,
    /// Where: characters (Unicode scalar values, not bytes) before the place, so 0 is the beginning.
    pub position: usize,
    /// What would have been right at that place; empty when nothing would (a limit was reached, say).
    pub expected: Cow<'static, str>,
    /// What is wrong, as a sentence.
    pub message: Cow<'static, str>,
    /// What to write instead, when that can be told.
    pub hint: Option<Cow<'static, str>>,
}

/// What kind of error it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormulaErrorKind {
    /// There is no formula: nothing, white space, or a comment alone.
    Empty,
    /// Longer than [`Limits::bytes_max`](super::Limits::bytes_max).
    TooLong,
    /// Brackets within brackets beyond [`Limits::depth_max`](super::Limits::depth_max).
    TooDeep,
    /// The text breaks off, or holds something that does not belong there.
    Syntax,
    /// A name that is no function.
    UnknownFunction,
    /// A function with too many or too few arguments.
    Arguments,
    /// A modifier that does not exist for these dice, or is not complete.
    Modifier,
    /// A variable the roller does not have.
    UnknownVariable,
    /// A number of dice that is no whole number of 0 or more (as a written number: 1 or more).
    Count,
    /// A number of faces that is no whole number of 1 or more, or above the limit.
    Faces,
    /// More dice than a term or a formula may roll, explosions and rerolls included.
    TooManyDice,
    /// A division (or remainder) by zero.
    DivisionByZero,
    /// A result that is no finite number.
    NotFinite,
    /// The dice given by hand ran out or do not fit.
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

/// An error whose place is still a byte of the source. The formula turns it into a [`FormulaError`] at its border.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: FormulaErrorKind,
    pub(super) at: u32,
    pub(super) expected: Cow<'static, str>,
    pub(super) message: Cow<'static, str>,
    pub(super) hint: Option<Cow<'static, str>>,
}

/// Boxed, because a result is passed through every step of a roll and an error is rare.
pub(super) type Outcome<T> = Result<T, Box<Fault>>;

impl Fault {
    #[cold]
    pub(super) fn new(kind: FormulaErrorKind, at: u32, message: impl Into<Cow<'static, str>>) -> Box<Self> {
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

    /// The same without the number that was computed at the roll: it would tell what the dice showed.
    #[cold]
    pub(super) fn untold(mut self: Box<Self>) -> Box<Self> {
        match self.kind {
            FormulaErrorKind::Count => self.message = "the computed number of dice is no number of dice".into(),
            FormulaErrorKind::Faces => self.message = "a die of the computed number of faces cannot be rolled".into(),
            FormulaErrorKind::TooManyDice => {
                self.message = "the computed number of dice is more than is allowed".into()
            }
            _ => {}
        }
        self
    }

    /// The public error: bytes become characters.
    #[cold]
    pub(super) fn locate(self, source: &str) -> FormulaError {
        let at = self.at as usize;
        let position = source.char_indices().take_while(|(byte, _)| *byte < at).count();
        FormulaError { kind: self.kind, position, expected: self.expected, message: self.message, hint: self.hint }
    }
}
