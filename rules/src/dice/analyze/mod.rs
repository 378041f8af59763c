//! Statistics of a formula before it is rolled.
//!
//! `evaluate` runs the formula with distributions and is exact. If that would take too long, or there is no exact way for a
//! combination of modifiers, `simulate` rolls the formula for a fixed amount of work. The answer says which of them it used.
//! `bounds` uses interval arithmetic for the least and greatest total where the distribution does not show its ends. All work is
//! charged to a budget (`work`), so any formula within the limits is answered within some tens of milliseconds.
//!
//! `term` computes a dice term: `die` follows one die through the modifiers, `limited` and `order` are for dice that depend on
//! each other.
//!
//! To add a modifier, add its arm to `die` (unless it treats each die separately, which `roll::touch` does) and to `dice_bounds`.

mod bounds;
mod dice_bounds;
mod die;
mod distribution;
mod evaluate;
mod interval;
mod lattice;
mod limited;
mod order;
mod pool;
mod simulate;
mod term;
mod work;

use serde::Serialize;

use super::{
    Formula, FormulaError, Variables,
    error::Outcome,
    roll::{number, optional_number, pairs},
};
use distribution::Distribution;
use interval::Interval;
use simulate::Sample;
use work::{Stop, Work};

/// Totals less likely than this are left out of the answer.
const UNLIKELY: f64 = 1e-12;

/// Statistics of a formula.
///
/// As JSON: `{"min": 2, "max": 12, "mean": 7, "standard_deviation": 2.4…, "method": "exact", "distribution": [[2, 0.02…], …]}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The least total; `None` if there is none (`-1d6x`). For a simulated formula a bound that may never be reached.
    #[serde(serialize_with = "optional_number")]
    pub min: Option<f64>,
    /// The greatest total; `None` if explosions are unbounded. For a simulated formula a bound that may never be
    /// reached.
    #[serde(serialize_with = "optional_number")]
    pub max: Option<f64>,
    /// The mean.
    #[serde(serialize_with = "number")]
    pub mean: f64,
    /// The standard deviation.
    #[serde(serialize_with = "number")]
    pub standard_deviation: f64,
    /// How the statistics were computed.
    pub method: Method,
    /// Totals in rising order with their probabilities, at most 10,000. Totals less likely than 10^-12 are left out. A
    /// simulation with more than 1,000 different totals has 1,000 ranges instead, represented by their middles.
    #[serde(serialize_with = "pair_list")]
    pub distribution: Vec<(f64, f64)>,
}

/// How statistics were computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Exactly, except for rounding. Explosions are followed until another one is less likely than 10^-15.
    Exact,
    /// By rolling many times.
    Simulated,
}

#[expect(clippy::ptr_arg, reason = "serde gives the field as it is")]
fn pair_list<S: serde::Serializer>(list: &Vec<(f64, f64)>, serializer: S) -> Result<S::Ok, S::Error> {
    pairs(list, serializer)
}

impl Formula {
    /// The statistics of this formula for a roller with these variables. `seed` is for simulation only; the same seed gives
    /// the same answer.
    ///
    /// # Errors
    /// If rolls fail or can fail: an unknown variable, a divisor that may become 0, a number of dice that may become
    /// negative, or explosions that nearly always exceed their limit.
    pub fn analyze(&self, variables: &Variables<'_>, seed: u64) -> Result<Statistics, FormulaError> {
        statistics(self, variables, seed).map_err(|fault| self.located(*fault))
    }
}

fn statistics(formula: &Formula, variables: &Variables<'_>, seed: u64) -> Outcome<Statistics> {
    let bounds = bounds::bounds(formula, variables)?;
    match evaluate::evaluate(formula, variables, &mut Work::new()) {
        Ok(distribution) => Ok(exact(&distribution, bounds)),
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::TooMuch) => Ok(simulated(simulate::simulate(formula, variables, seed)?, bounds)),
    }
}

fn exact(distribution: &Distribution, bounds: Interval) -> Statistics {
    let points = &distribution.points;
    let (mut min, mut max) = (finite(bounds.low), finite(bounds.high));
    if let (true, Some(first), Some(last)) = (distribution.whole, points.first(), points.last()) {
        (min, max) = (Some(first.0), Some(last.0));
    }
    let (mean, standard_deviation) = distribution.moments();
    let distribution = points.iter().copied().filter(|(_, p)| *p >= UNLIKELY).collect();
    Statistics { min, max, mean, standard_deviation, method: Method::Exact, distribution }
}

fn simulated(sample: Sample, bounds: Interval) -> Statistics {
    Statistics {
        min: finite(bounds.low),
        max: finite(bounds.high),
        mean: sample.mean,
        standard_deviation: sample.deviation,
        method: Method::Simulated,
        distribution: sample.points,
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value + 0.0)
}
