//! The budget of an analysis. Everything that takes time is charged here first, so that no formula takes long.

use crate::dice::error::Fault;

/// The number of steps of exact work. A step is about one multiplication and addition.
const UNITS: u64 = 32_000_000;

/// The most points of a distribution, both internally and in the answer.
pub(super) const POINTS_MAX: usize = 10_000;

/// Why exact work ended without a result.
pub(super) enum Stop {
    /// It would take too long, or there is no exact way. Simulate instead.
    TooMuch,
    /// The formula can fail.
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// The result of exact work.
pub(super) type Exact<T> = Result<T, Stop>;

/// The remaining budget.
pub(super) struct Work {
    left: u64,
}

impl Work {
    pub(super) const fn new() -> Self {
        Self { left: UNITS }
    }

    /// Gives up early if the work will cost at least `units`.
    pub(super) fn require(&self, units: usize) -> Exact<()> {
        if self.left < units as u64 { Err(Stop::TooMuch) } else { Ok(()) }
    }

    /// Charges the budget before the work is done.
    pub(super) fn charge(&mut self, units: usize) -> Exact<()> {
        self.left = self.left.checked_sub(units as u64).ok_or(Stop::TooMuch)?;
        Ok(())
    }
}
