//! Distributions over any numbers: values in rising order with their probabilities.

use super::{
    lattice::Lattice,
    work::{Exact, POINTS_MAX, Stop, Work},
};

/// The most pairs that are examined one by one.
const PAIRS_MAX: usize = 250_000;
/// The cost of a pair compared with a step of a convolution, because it is computed, sorted and merged.
const PAIR_COST: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Values in rising order, with probabilities.
    pub(super) points: Vec<(f64, f64)>,
    /// Whether nothing was cut off. The ends are then the least and the greatest value.
    pub(super) whole: bool,
}

impl Distribution {
    pub(super) fn constant(value: f64) -> Self {
        Self { points: vec![(value, 1.0)], whole: true }
    }

    /// Sorts points and merges those whose values differ only by rounding.
    pub(super) fn gather(mut points: Vec<(f64, f64)>, whole: bool) -> Exact<Self> {
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for (value, probability) in points {
            match merged.last_mut() {
                Some(last) if value - last.0 <= 1e-12 * value.abs().max(1.0) => last.1 += probability,
                // Adding zero turns negative zero into zero.
                _ => merged.push((value + 0.0, probability)),
            }
        }
        if merged.len() > POINTS_MAX { Err(Stop::TooMuch) } else { Ok(Self { points: merged, whole }) }
    }

    /// The distribution with the weights of whole numbers.
    pub(super) fn from_lattice(lattice: &Lattice) -> Self {
        let values = (lattice.offset..).map(|v| v as f64);
        let points = values.zip(lattice.weights.iter().copied()).filter(|(_, weight)| *weight > 0.0).collect();
        Self { points, whole: lattice.whole }
    }

    /// The weights of whole numbers, if all values are whole and close together.
    pub(super) fn to_lattice(&self) -> Option<Lattice> {
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        let span = last - first;
        if span > 8.0 * self.points.len() as f64 + 64.0 || first.abs().max(last.abs()) > 1e15 {
            return None;
        }
        let mut weights = vec![0.0; span as usize + 1];
        for (value, weight) in &self.points {
            if value.fract() != 0.0 {
                return None;
            }
            *weights.get_mut((value - first) as usize)? += weight;
        }
        Some(Lattice { offset: first as i64, weights, whole: self.whole })
    }

    /// Applies a function to each value. If it returns an error, the formula can fail.
    pub(super) fn map(&self, apply: impl Fn(f64) -> Exact<f64>, work: &mut Work) -> Exact<Self> {
        work.charge(self.points.len() * PAIR_COST)?;
        let points = self.points.iter().map(|(v, p)| Ok((apply(*v)?, *p))).collect::<Exact<Vec<_>>>()?;
        Self::gather(points, self.whole)
    }

    /// Applies a function to each pair of independent values.
    pub(super) fn combine(&self, other: &Self, apply: impl Fn(f64, f64) -> Exact<f64>, work: &mut Work) -> Exact<Self> {
        let pairs = self.points.len() * other.points.len();
        if pairs > PAIRS_MAX {
            return Err(Stop::TooMuch);
        }
        work.charge(pairs * PAIR_COST)?;
        let mut points = Vec::with_capacity(pairs);
        for (left, p) in &self.points {
            for (right, q) in &other.points {
                points.push((apply(*left, *right)?, p * q));
            }
        }
        Self::gather(points, self.whole && other.whole)
    }

    /// The sum of two independent values, or their difference.
    pub(super) fn plus(&self, other: &Self, minus: bool, work: &mut Work) -> Exact<Self> {
        let sign = if minus { -1.0 } else { 1.0 };
        // Adding a constant only moves the values. Nothing needs to be merged.
        if other.points.len() == 1 || self.points.len() == 1 {
            return self.combine(other, |a, b| finite(a + sign * b), work);
        }
        let negated;
        let right = if minus {
            negated = other.negated();
            &negated
        } else {
            other
        };
        match (self.to_lattice(), right.to_lattice()) {
            (Some(a), Some(b)) => Ok(Self::from_lattice(&a.plus(&b, work)?)),
            _ => self.combine(right, |a, b| finite(a + b), work),
        }
    }

    pub(super) fn negated(&self) -> Self {
        let points = self.points.iter().rev().map(|(value, p)| (0.0 - value, *p)).collect();
        Self { points, whole: self.whole }
    }

    /// Mean and standard deviation.
    pub(super) fn moments(&self) -> (f64, f64) {
        let mass: f64 = self.points.iter().map(|(_, p)| p).sum();
        let mean = self.points.iter().map(|(v, p)| v * p).sum::<f64>() / mass;
        let variance = self.points.iter().map(|(v, p)| (v - mean) * (v - mean) * p).sum::<f64>() / mass;
        (mean, variance.max(0.0).sqrt())
    }
}

/// Sums of finite numbers can still be too large.
fn finite(value: f64) -> Exact<f64> {
    if value.is_finite() { Ok(value) } else { Err(Stop::TooMuch) }
}
