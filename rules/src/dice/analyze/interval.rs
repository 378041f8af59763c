//! Intervals of numbers, and those of a modifier's limit and operand.

use crate::dice::modifier::{Modifier, Operand};

/// From `low` to `high`. Both may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    pub(super) const ANY: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    pub(super) const fn point(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// The interval between two numbers in any order. If one is not a number (infinity minus infinity, the root of a
    /// negative number), the value can be anything.
    pub(super) fn of(low: f64, high: f64) -> Self {
        if low.is_nan() || high.is_nan() { Self::ANY } else { Self { low: low.min(high), high: low.max(high) } }
    }

    pub(super) fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of a function of two numbers whose extremes are at the corners.
    pub(super) fn corners(self, other: Self, apply: impl Fn(f64, f64) -> f64) -> Self {
        let corner = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { apply(a, b) };
        let one = Self::of(corner(self.low, other.low), corner(self.high, other.high));
        let two = Self::of(corner(self.low, other.high), corner(self.high, other.low));
        Self { low: one.low.min(two.low), high: one.high.max(two.high) }
    }
}

/// The intervals of a modifier's limit and operand.
pub(super) fn numbers(
    modifier: &Modifier,
    computed: &mut impl Iterator<Item = Interval>,
) -> (Option<Interval>, Option<Interval>) {
    let mut number = |operand: Option<Operand>| match operand? {
        Operand::Value(value) => Some(Interval::point(value)),
        Operand::Stack => Some(computed.next().unwrap_or(Interval::ANY)),
    };
    (number(modifier.limit), number(modifier.operand))
}
