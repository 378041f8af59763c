//! A formula: parsed once, rolled any number of times.

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

/// A parsed dice formula, such as `4d6kh3 + @abilities.con.mod`.
///
/// Parsing checks everything that is written. Computed values (counts, targets, divisors) are checked at each roll.
/// `docs/dice.md` describes the language. [`Display`](fmt::Display) writes the canonical form.
#[derive(Clone, Debug)]
pub struct Formula {
    pub(super) source: Box<str>,
    pub(super) program: Program,
    pub(super) flavours: Vec<Arc<str>>,
    pub(super) limits: Limits,
    /// The original text, if names were replaced by their meaning.
    given: Option<Box<(Box<str>, Expanded)>>,
}

impl Formula {
    /// Parses a formula within the default [`Limits`].
    ///
    /// # Errors
    /// If it is not a formula or exceeds a limit: where, what was expected, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        Self::parse_within(text, &Limits::default())
    }

    /// Parses a formula within limits, which also apply to its rolls.
    ///
    /// # Errors
    /// As for [`Formula::parse`].
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Self, FormulaError> {
        let limits = limits.within_ceilings();
        let program = parse(text, &limits).map_err(|fault| fault.locate(text))?;
        Ok(Self::of(text, program, limits))
    }

    /// Parses a formula for a roller with variables that are formulas themselves or have hyphens in their names. These are
    /// replaced by their meaning. Errors of the formula and its rolls have positions in `text`.
    ///
    /// # Errors
    /// As for [`Formula::parse`]; also for a variable whose text is not a formula or makes the formula too long.
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

    /// Converts a fault in [`Self::source`] to a public error.
    #[cold]
    pub(super) fn located(&self, mut fault: Fault) -> FormulaError {
        let Some(given) = &self.given else { return fault.locate(&self.source) };
        fault.at = given.1.origin(fault.at);
        fault.locate(&given.0)
    }

    /// The text that was parsed, in which variables that are formulas are replaced.
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

    /// The flavours `[…]` of its terms, trimmed, in written order.
    pub fn flavours(&self) -> impl Iterator<Item = &str> {
        self.flavours.iter().map(AsRef::as_ref)
    }

    /// The canonical form without flavours. Formulas with the same one roll the same dice to the same total.
    #[must_use]
    pub fn meaning(&self) -> String {
        super::display::write(&self.program, &self.source, false)
    }

    /// The variables that it uses, without the `@`, in written order. A variable may occur more than once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.program.variables.iter().filter_map(|r| self.source.get(r.start as usize..r.end as usize))
    }

    /// The error of every roll, if it can be found without dice: a division by zero, a negative number of dice, an
    /// unknown variable. Ask this first to avoid drawing dice for a formula that always fails.
    #[must_use]
    pub fn certain_error(&self, variables: &Variables<'_>) -> Option<FormulaError> {
        roll::certain_fault(&self.program, &self.source, &self.limits, variables).map(|f| self.located(*f))
    }

    /// The error of a failed roll. An error that occurs in any case takes precedence over one that depends on the dice,
    /// which must not contain values.
    #[cold]
    fn failed(&self, fault: Box<Fault>, variables: &Variables<'_>) -> FormulaError {
        let certain = match fault.kind {
            FormulaErrorKind::Dice(_) => None,
            _ => self.certain_error(variables),
        };
        certain.unwrap_or_else(|| self.located(*fault))
    }

    /// Rolls the formula and reports every die.
    ///
    /// # Errors
    /// If a computed value is invalid (a number of dice, a divisor of 0, an unknown variable), a limit is reached, or
    /// dice run out.
    pub fn roll<D: Dice>(&self, dice: &mut D, variables: &Variables<'_>) -> Result<Roll, FormulaError> {
        let mut roll = Roll::default();
        self.roll_into(dice, variables, &mut roll)?;
        Ok(roll)
    }

    /// As [`Formula::roll`], into a result whose memory is reused. After an error the result's content is meaningless.
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

    /// Rolls and returns only the total: the same dice in the same order, but none reported.
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
        f.write_str(&super::display::write(&self.program, &self.source, true))
    }
}
