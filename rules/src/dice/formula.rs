//! A formula: read once, rolled as often as one likes.

use std::{fmt, sync::Arc};

use super::{
    Dice, Variables,
    error::{Fault, FormulaError, FormulaErrorKind},
    expand::{Expanded, Names, expand},
    limits::Limits,
    parse::parse,
    program::Program,
    roll::{self, Roll},
};

/// A dice formula that has been read: `4d6kh3 + @abilities.con.mod`.
///
/// Reading checks everything that is written; what is computed (counts, targets, divisors) is checked when it is rolled.
/// `docs/dice.md` describes the language. [`Display`](fmt::Display) writes it in its canonical form.
#[derive(Clone, Debug)]
pub struct Formula {
    pub(super) source: Box<str>,
    pub(super) program: Program,
    pub(super) flavours: Vec<Arc<str>>,
    pub(super) limits: Limits,
    /// As it was given, if names were written out.
    given: Option<Box<(Box<str>, Expanded)>>,
}

impl Formula {
    /// Reads a formula, within the usual [`Limits`].
    ///
    /// # Errors
    /// When it is no formula, or asks for more than the limits allow: where, what was expected, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        Self::parse_within(text, &Limits::default())
    }

    /// Reads a formula within limits, which also hold for its rolls.
    ///
    /// # Errors
    /// As for [`Formula::parse`].
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Self, FormulaError> {
        let limits = limits.within_ceilings();
        let program = parse(text, &limits).map_err(|fault| fault.locate(text))?;
        Ok(Self::of(text, program, limits))
    }

    /// Reads a formula of a roller some of whose variables are formulas themselves, or have hyphens in their names: those are
    /// written out. Errors of the formula and of its rolls name places of `text`.
    ///
    /// # Errors
    /// As for [`Formula::parse`]; also for a variable whose text is no formula, or makes it too long.
    pub fn parse_with(text: &str, names: &Names<'_>) -> Result<Self, FormulaError> {
        let limits = Limits::default().within_ceilings();
        let Some(expanded) = expand(text, names, &limits).map_err(|fault| fault.locate(text))? else {
            return Self::parse_within(text, &limits);
        };
        match parse(&expanded.text, &limits) {
            Ok(program) => {
                let formula = Self::of(&expanded.text, program, limits);
                Ok(Self { given: Some(Box::new((text.into(), expanded))), ..formula })
            }
            Err(mut fault) => {
                fault.at = expanded.origin(fault.at);
                Err(fault.locate(text))
            }
        }
    }

    fn of(text: &str, program: Program, limits: Limits) -> Self {
        let flavour = |r: &std::ops::Range<u32>| text.get(r.start as usize..r.end as usize).unwrap_or_default().trim();
        let flavours = program.flavours.iter().map(|range| Arc::from(flavour(range))).collect();
        Self { source: text.into(), program, flavours, limits, given: None }
    }

    /// The public error of a fault in [`Self::source`].
    #[cold]
    pub(super) fn located(&self, mut fault: Fault) -> FormulaError {
        let Some(given) = &self.given else { return fault.locate(&self.source) };
        fault.at = given.1.origin(fault.at);
        fault.locate(&given.0)
    }

    /// The text it was read from, variables that are formulas written out.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The comment after `#`, trimmed.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        let range = self.program.comment.as_ref()?;
        self.source.get(range.start as usize..range.end as usize)
    }

    /// The flavours `[…]` of its terms, trimmed, in the order they are written.
    pub fn flavours(&self) -> impl Iterator<Item = &str> {
        self.flavours.iter().map(AsRef::as_ref)
    }

    /// The variables it asks for, without the `@`, in the order they are written; one may come more than once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.program.variables.iter().filter_map(|r| self.source.get(r.start as usize..r.end as usize))
    }

    /// Why every roll of it fails, if that can be told without a die: a division by zero, a number of dice below zero, an
    /// unknown variable. Whoever asks this first draws nothing for a formula that cannot be.
    #[must_use]
    pub fn certain_error(&self, variables: &Variables<'_>) -> Option<FormulaError> {
        roll::certain_fault(&self.program, &self.source, &self.limits, variables).map(|f| self.located(*f))
    }

    /// An error of a roll: what fails in any case comes before what these dice led to, whose error names no value.
    #[cold]
    fn failed(&self, fault: Box<Fault>, variables: &Variables<'_>) -> FormulaError {
        let certain = match fault.kind {
            FormulaErrorKind::Dice(_) => None,
            _ => self.certain_error(variables),
        };
        certain.unwrap_or_else(|| self.located(*fault))
    }

    /// Rolls it and reports every die.
    ///
    /// # Errors
    /// When something computed does not fit (a number of dice, a divisor of 0, an unknown variable), a limit is reached,
    /// or the dice run out.
    pub fn roll<D: Dice>(&self, dice: &mut D, variables: &Variables<'_>) -> Result<Roll, FormulaError> {
        let mut roll = Roll::default();
        self.roll_into(dice, variables, &mut roll)?;
        Ok(roll)
    }

    /// As [`Formula::roll`], into a result whose memory is used again. After an error the result holds nothing of use.
    ///
    /// # Errors
    /// As for [`Formula::roll`].
    pub fn roll_into<D: Dice>(
        &self,
        dice: &mut D,
        variables: &Variables<'_>,
        roll: &mut Roll,
    ) -> Result<(), FormulaError> {
        let named = (&*self.source, &*self.flavours);
        roll::report(&self.program, named, &self.limits, dice, variables, roll)
            .map_err(|fault| self.failed(fault, variables))
    }

    /// Rolls it for the total alone: the same dice in the same order, none reported.
    ///
    /// # Errors
    /// As for [`Formula::roll`].
    pub fn total<D: Dice>(&self, dice: &mut D, variables: &Variables<'_>) -> Result<f64, FormulaError> {
        roll::total(&self.program, &self.source, &self.limits, dice, variables)
            .map_err(|fault| self.failed(fault, variables))
    }
}

impl std::str::FromStr for Formula {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        Self::parse(text)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::display::write(&self.program, &self.source))
    }
}
