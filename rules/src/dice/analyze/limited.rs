//! Terms with one reroll or explosion that is limited to a number of times: `r1=1`, `x3=6`.
//!
//! Dice are checked in the order of rolling, so we only need to remember how often it has happened; for `rr` and `x` also how
//! many of the new dice still need a check.

use super::{
    die::{Chain, Dice, arrive, fresh},
    lattice::Lattice,
    work::{Exact, Stop, Work},
};
use crate::dice::modifier::{Action, Test};

/// Larger limits are simulated.
const LIMIT_MAX: u32 = 64;

/// What a die adds if it does not pass, if it passes and the limit allows it, and if it passes too late.
struct Shares {
    missed: Lattice,
    hit: Lattice,
    either: Lattice,
}

/// The distribution of the total. `index` is the limited action.
pub(super) fn total(dice: &Dice<'_>, index: usize, work: &mut Work) -> Exact<Lattice> {
    let before = dice.actions.get(..index).unwrap_or_default();
    let after = dice.actions.get(index + 1..).unwrap_or_default();
    let (test, limit, again, explodes) = match dice.actions.get(index) {
        Some(Action::Reroll { test, limit, again }) => (*test, *limit, *again, false),
        Some(Action::Explode { test, limit, again }) => (*test, *limit, *again, true),
        _ => return Err(Stop::TooMuch),
    };
    let is_limited =
        |a: &Action| matches!(a, Action::Reroll { limit, .. } | Action::Explode { limit, .. } if *limit != u32::MAX);
    // At most this many of the first dice can pass, unless new dice can pass too.
    let limit = if again { limit } else { limit.min(dice.count) };
    if limit > LIMIT_MAX || after.iter().any(is_limited) {
        return Err(Stop::TooMuch);
    }
    let chain = Chain::new(dice, after, work)?;
    let falling = chain.share(fresh(dice.sides), 0, work)?;
    let first = shares(&chain, arrive(dice, before, work)?.into_iter(), test, explodes, work)?;
    // The sums by the number of times it has happened.
    let mut sums = vec![Lattice::empty(); limit as usize + 1];
    if let Some(none) = sums.first_mut() {
        *none = Lattice::point(0, 1.0);
    }
    for _ in 0..dice.count {
        sums = step(&sums, &first, work)?;
    }
    if !again {
        let mut total = Lattice::empty();
        let mut fallen = Lattice::point(0, 1.0);
        for sum in &sums {
            total.accumulate(&sum.plus(&fallen, work)?, 0, 1.0, work)?;
            fallen = fallen.plus(&falling, work)?;
        }
        return Ok(total);
    }
    let later = shares(&chain, fresh(dice.sides), test, explodes, work)?;
    settle(sums, &later, work)
}

fn shares(
    chain: &Chain<'_>,
    states: impl Iterator<Item = (super::die::State, f64)> + Clone,
    test: Test,
    explodes: bool,
    work: &mut Work,
) -> Exact<Shares> {
    let passing = states.clone().filter(|(state, _)| test.holds_die(state.shown));
    let missing = states.clone().filter(|(state, _)| !test.holds_die(state.shown));
    let missed = chain.share(missing, 0, work)?;
    // A rerolled die adds nothing itself; an exploded one does.
    let hit = if explodes {
        chain.share(passing, 0, work)?
    } else {
        let chance: f64 = passing.map(|(_, weight)| weight).sum();
        if chance > 0.0 { Lattice::point(0, chance) } else { Lattice::empty() }
    };
    Ok(Shares { missed, hit, either: chain.share(states, 0, work)? })
}

/// Checks one more die.
fn step(sums: &[Lattice], shares: &Shares, work: &mut Work) -> Exact<Vec<Lattice>> {
    let mut next = vec![Lattice::empty(); sums.len()];
    let last = sums.len() - 1;
    for (times, sum) in sums.iter().enumerate().filter(|(_, sum)| !sum.is_empty()) {
        let stays = if times == last { &shares.either } else { &shares.missed };
        if let Some(slot) = next.get_mut(times) {
            slot.accumulate(&sum.plus(stays, work)?, 0, 1.0, work)?;
        }
        if let Some(slot) = next.get_mut(times + 1) {
            slot.accumulate(&sum.plus(&shares.hit, work)?, 0, 1.0, work)?;
        }
    }
    Ok(next)
}

/// Checks the new dice, and the dice that they cause. After `times` hits there are as many new dice.
fn settle(sums: Vec<Lattice>, shares: &Shares, work: &mut Work) -> Exact<Lattice> {
    let last = sums.len() - 1;
    // By the number of hits, then by the number of dice that still need a check.
    let mut table: Vec<Vec<Lattice>> = Vec::with_capacity(sums.len());
    for (times, sum) in sums.into_iter().enumerate() {
        let mut row = vec![Lattice::empty(); last + 2];
        if let Some(slot) = row.get_mut(times) {
            *slot = sum;
        }
        table.push(row);
    }
    let mut total = Lattice::empty();
    for times in 0..=last {
        for left in (1..=last + 1).rev() {
            let Some(sum) = table.get_mut(times).and_then(|row| row.get_mut(left)).map(std::mem::take) else {
                continue;
            };
            if sum.is_empty() {
                continue;
            }
            let stays = if times == last { &shares.either } else { &shares.missed };
            let stayed = sum.plus(stays, work)?;
            if let Some(slot) = table.get_mut(times).and_then(|row| row.get_mut(left - 1)) {
                slot.accumulate(&stayed, 0, 1.0, work)?;
            }
            // One die is checked and another one added, so the number stays the same.
            if let Some(slot) = table.get_mut(times + 1).and_then(|row| row.get_mut(left)) {
                slot.accumulate(&sum.plus(&shares.hit, work)?, 0, 1.0, work)?;
            }
        }
        if let Some(done) = table.get(times).and_then(|row| row.first()) {
            total.accumulate(done, 0, 1.0, work)?;
        }
    }
    Ok(total)
}
