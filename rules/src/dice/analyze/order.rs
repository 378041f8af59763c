//! Sums of kept dice: the dice are sorted by value, and those between two ranks are kept.
//!
//! The values are processed in rising order. After each value we know how many dice show no more than it. That number
//! determines which of the dice with the next value are kept.

use super::{
    lattice::Lattice,
    work::{Exact, Work},
};

/// The kept ranks of the sorted dice: `from` up to but not including `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptRanks {
    pub(super) count: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl KeptRanks {
    /// Applies another keep or drop to the kept ranks.
    pub(super) fn select(&mut self, keep: bool, highest: bool, count: u32) {
        let present = self.to - self.from;
        let gone = if keep { present.saturating_sub(count) } else { count.min(present) };
        if keep == highest {
            self.from += gone;
        } else {
            self.to -= gone;
        }
    }

    /// How many of `more` dice are kept if `below` dice are smaller.
    fn overlap(&self, below: u32, more: u32) -> u32 {
        (below + more).min(self.to).saturating_sub(below.max(self.from))
    }
}

/// The distribution of the sum. `shares` has for each value, in rising order, what one kept die adds and the probability of
/// that value.
pub(super) fn total(shares: &[(Lattice, f64)], kept: &KeptRanks, work: &mut Work) -> Exact<Lattice> {
    work.charge(kept.count as usize * shares.len())?;
    let mut table = vec![Lattice::empty(); kept.count as usize + 1];
    if let Some(none) = table.first_mut() {
        *none = Lattice::point(0, 1.0);
    }
    for (share, chance) in shares {
        let powers = powers(share, kept, work)?;
        let mut next = vec![Lattice::empty(); table.len()];
        for (below, sums) in table.iter().enumerate().filter(|(_, sums)| !sums.is_empty()) {
            // The number of ways to choose these dice from the remaining ones, times the probability that all show this
            // value.
            let mut weight = 1.0;
            let left = table.len() - 1 - below;
            for (more, slot) in next.iter_mut().skip(below).enumerate() {
                let count = kept.overlap(below as u32, more as u32) as usize;
                match powers.get(count) {
                    Some(Power::Shift(by)) => slot.accumulate(sums, *by, weight, work)?,
                    Some(Power::Sum(sum)) => slot.accumulate(&sums.plus(sum, work)?, 0, weight, work)?,
                    None => {}
                }
                work.charge(20)?;
                weight *= (left - more.min(left)) as f64 / (more + 1) as f64 * chance;
            }
        }
        table = next;
    }
    let mut sum = table.pop().unwrap_or_else(Lattice::empty);
    sum.trim();
    Ok(sum)
}

/// What a number of equal dice add.
enum Power {
    Shift(i64),
    Sum(Lattice),
}

fn powers(share: &Lattice, kept: &KeptRanks, work: &mut Work) -> Exact<Vec<Power>> {
    let most = i64::from(kept.to - kept.from);
    if let ([_], true) = (share.weights.as_slice(), share.whole) {
        work.charge(most as usize)?;
        return Ok((0..=most).map(|count| Power::Shift(share.offset * count)).collect());
    }
    let mut list = vec![Power::Shift(0)];
    let mut sum = Lattice::point(0, 1.0);
    for _ in 0..most {
        sum = sum.plus(share, work)?;
        list.push(Power::Sum(sum.clone()));
    }
    Ok(list)
}
