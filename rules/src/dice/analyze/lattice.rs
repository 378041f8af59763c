//! Distributions over whole numbers: a weight for each number in a range. Dice are always of this kind.
//!
//! The weights need not add up to 1, because parts of distributions are treated the same way.

use super::work::{Exact, POINTS_MAX, Stop, Work};

/// Once a distribution is long, tails whose points weigh less than this are cut off. They never show in a result.
const NEGLIGIBLE: f64 = 1e-20;
/// Shorter distributions keep all points, so that their ends are the least and the greatest total.
const WHOLE_MAX: usize = 256;

/// The cost of a sum besides its multiplications, for its new memory.
const PLUS_COST: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lattice {
    /// The number of the first weight.
    pub(super) offset: i64,
    pub(super) weights: Vec<f64>,
    /// Whether nothing was cut off. The ends are then the least and the greatest number.
    pub(super) whole: bool,
}

impl Default for Lattice {
    fn default() -> Self {
        Self::empty()
    }
}

impl Lattice {
    /// A distribution without points.
    pub(super) const fn empty() -> Self {
        Self { offset: 0, weights: Vec::new(), whole: true }
    }

    /// One number with this weight.
    pub(super) fn point(value: i64, weight: f64) -> Self {
        Self { offset: value, weights: vec![weight], whole: true }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Adds another distribution, moved by `shift` and multiplied by `factor`.
    pub(super) fn accumulate(&mut self, other: &Self, shift: i64, factor: f64, work: &mut Work) -> Exact<()> {
        // A factor of 0 was too small to represent, so something is lost.
        self.whole &= other.whole && factor > 0.0;
        if other.is_empty() || factor == 0.0 {
            return Ok(());
        }
        let start = other.offset + shift;
        self.cover(start, start + other.weights.len() as i64, work)?;
        work.charge(other.weights.len())?;
        let from = (start - self.offset) as usize;
        let into = self.weights.get_mut(from..).unwrap_or_default();
        for (slot, weight) in into.iter_mut().zip(&other.weights) {
            *slot += weight * factor;
        }
        Ok(())
    }

    /// Adds a weight to one number.
    pub(super) fn put(&mut self, value: i64, weight: f64, work: &mut Work) -> Exact<()> {
        self.cover(value, value + 1, work)?;
        if let Some(slot) = self.weights.get_mut((value - self.offset) as usize) {
            *slot += weight;
        }
        Ok(())
    }

    /// Makes room for the numbers from `start` up to but not including `end`.
    fn cover(&mut self, start: i64, end: i64, work: &mut Work) -> Exact<()> {
        if self.is_empty() {
            self.offset = start;
        }
        let low = start.min(self.offset);
        let high = end.max(self.offset + self.weights.len() as i64);
        let length = (high - low) as usize;
        if length > POINTS_MAX {
            return Err(Stop::TooMuch);
        }
        if low < self.offset {
            let missing = (self.offset - low) as usize;
            work.charge(length)?;
            self.weights.splice(0..0, std::iter::repeat_n(0.0, missing));
            self.offset = low;
        }
        if length > self.weights.len() {
            work.charge(length - self.weights.len())?;
            self.weights.resize(length, 0.0);
        }
        Ok(())
    }

    /// The sum of two independent numbers.
    pub(super) fn plus(&self, other: &Self, work: &mut Work) -> Exact<Self> {
        let whole = self.whole && other.whole;
        if self.is_empty() || other.is_empty() {
            return Ok(Self { whole, ..Self::empty() });
        }
        let length = self.weights.len() + other.weights.len() - 1;
        if length > POINTS_MAX {
            return Err(Stop::TooMuch);
        }
        let (short, long) = if self.weights.len() < other.weights.len() { (self, other) } else { (other, self) };
        work.charge(PLUS_COST + length + self.weights.len() * other.weights.len())?;
        let mut weights = vec![0.0; length];
        for (index, factor) in short.weights.iter().enumerate() {
            for (slot, weight) in weights.iter_mut().skip(index).zip(&long.weights) {
                *slot += weight * factor;
            }
        }
        let mut sum = Self { offset: self.offset + other.offset, weights, whole };
        sum.trim();
        Ok(sum)
    }

    /// The sum of `count` independent numbers with this distribution.
    pub(super) fn times(&self, mut count: u32, work: &mut Work) -> Exact<Self> {
        let mut result = Self::point(0, 1.0);
        let mut square = self.clone();
        loop {
            if count & 1 == 1 {
                result = result.plus(&square, work)?;
            }
            count >>= 1;
            if count == 0 {
                return Ok(result);
            }
            square = square.plus(&square, work)?;
        }
    }

    /// Cuts off negligible tails.
    pub(super) fn trim(&mut self) {
        if self.weights.len() <= WHOLE_MAX {
            return;
        }
        let matters = |weight: &f64| *weight >= NEGLIGIBLE;
        let Some(last) = self.weights.iter().rposition(matters) else { return };
        let first = self.weights.iter().position(matters).unwrap_or(0);
        if last + 1 < self.weights.len() || first > 0 {
            self.whole = false;
            self.weights.truncate(last + 1);
            self.weights.drain(..first);
            self.offset += first as i64;
        }
    }
}
