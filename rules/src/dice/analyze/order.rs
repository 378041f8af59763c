//! Sums of the dice that are kept: dice sorted by what they show, of which those between two ranks count.
//!
//! Values are taken in rising order. After each, it is known how many dice show no more than it; that number decides which
//! of the dice that show the next value are kept.

use super::{
    lattice::Lattice,
    work::{Exact, Work},
};

/// Which of the sorted dice are kept: ranks `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) count: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Kept {
    /// Keeps or drops of those that are kept so far.
    pub(super) fn select(&mut self, keep: bool, highest: bool, count: u32) {
        let present = self.to - self.from;
        let gone = if keep { present.saturating_sub(count) } else { count.min(present) };
        if keep == highest {
            self.from += gone;
        } else {
            self.to -= gone;
        }
    }

    /// How many of `more` dice, added to `below` smaller ones, are kept.
    fn overlap(&self, below: u32, more: u32) -> u32 {
        (below + more).min(self.to).saturating_sub(below.max(self.from))
    }
}

/// The distribution of the sum. `shares`: for each value, rising, what one kept die adds and how likely a die is to show it.
pub(super) fn total(shares: &[(Lattice, f64)], kept: &Kept, work: &mut Work) -> Exact<Lattice> {
    work.charge(kept.count as usize * shares.len())?;
    let mut table = vec![Lattice::empty(); kept.count as usize + 1];
    if let Some(none) = table.first_mut() {
        *none = Lattice::point(0, 1.0);
    }
    for (share, chance) in shares {
        let powers = powers(share, kept, work)?;
        let mut next = vec![Lattice::empty(); table.len()];
        for (below, sums) in table.iter().enumerate().filter(|(_, sums)| !sums.is_empty()) {
            // The ways to choose so many of the dice that are left, times the chance that all show this.
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

/// What so many equal dice add.
enum Power {
    Shift(i64),
    Sum(Lattice),
}

fn powers(share: &Lattice, kept: &Kept, work: &mut Work) -> Exact<Vec<Power>> {
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
