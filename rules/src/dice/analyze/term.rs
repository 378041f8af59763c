//! Exact distributions of the totals of dice terms.
//!
//! The dice of a term are summed if they are independent (`die`). With keep and drop their order matters, so `order` takes over.
//! A reroll or explosion that is limited to a number of times is followed by `limited`.

use super::{
    die::{Chain, Dice, State, arrive, fresh},
    lattice::Lattice,
    limited,
    order::{self, KeptRanks},
    work::{Exact, POINTS_MAX, Stop, Work},
};
use crate::dice::{modifier::Action, sides::Sides};

/// The distribution of the term's total, before the margin.
pub(super) fn total(dice: &Dice<'_>, work: &mut Work) -> Exact<Lattice> {
    if dice.sides.faces as usize > POINTS_MAX {
        return Err(Stop::TooMuch);
    }
    let is_limited =
        |a: &Action| matches!(a, Action::Reroll { limit, .. } | Action::Explode { limit, .. } if *limit != u32::MAX);
    let selects = dice.actions.iter().any(|a| matches!(a, Action::Select { .. }));
    match dice.actions.iter().position(is_limited) {
        Some(_) if selects => Err(Stop::TooMuch),
        Some(index) => limited::total(dice, index, work),
        None if selects => selected(dice, work),
        None if dice.actions.is_empty() => uniform(dice.sides, work)?.times(dice.count, work),
        None => {
            let chain = Chain::new(dice, dice.actions, work)?;
            chain.share(fresh(dice.sides), 0, work)?.times(dice.count, work)
        }
    }
}

/// The distribution of one die's value.
fn uniform(sides: Sides, work: &mut Work) -> Exact<Lattice> {
    let faces = sides.faces as usize;
    work.charge(faces * 2)?;
    let offset = i64::from(sides.span().0);
    Ok(Lattice { offset, weights: vec![1.0 / faces as f64; faces], whole: true })
}

/// The distribution of a term with keep or drop.
fn selected(dice: &Dice<'_>, work: &mut Work) -> Exact<Lattice> {
    let is_select = |a: &Action| matches!(a, Action::Select { .. });
    let first = dice.actions.iter().position(is_select).unwrap_or(0);
    let last = dice.actions.iter().rposition(is_select).unwrap_or(0);
    let before = dice.actions.get(..first).unwrap_or_default();
    let between = dice.actions.get(first..=last).unwrap_or_default();
    let after = dice.actions.get(last + 1..).unwrap_or_default();
    let mut states = arrive(dice, before, work)?;
    // For each state `order` examines every pair of numbers of dice.
    work.require(states.len() * (dice.count as usize).pow(2) * 2)?;
    let kept = narrow(&mut states, between, dice.count)?;
    let chain = Chain::new(dice, after, work)?;
    let mut shares = Vec::with_capacity(states.len());
    for (state, weight) in states {
        shares.push((chain.share(std::iter::once((state, 1.0)), 0, work)?, weight));
    }
    order::total(&shares, &kept, work)
}

/// Processes everything from the first keep or drop to the last: which ranks are kept, and the final states of the
/// dice.
fn narrow(states: &mut [(State, f64)], actions: &[Action], count: u32) -> Exact<KeptRanks> {
    let mut kept = KeptRanks { count, from: 0, to: count };
    for action in actions {
        match *action {
            Action::Select { keep, highest, count } => {
                // Dice with the same value must have the same state. Otherwise chance decides which of them is dropped.
                if states.windows(2).any(|pair| matches!(pair, [a, b] if a.0.shown == b.0.shown && a.0 != b.0)) {
                    return Err(Stop::TooMuch);
                }
                kept.select(keep, highest, count);
            }
            Action::Reroll { .. } | Action::Explode { .. } => return Err(Stop::TooMuch),
            other => states.iter_mut().for_each(|(state, _)| state.touch(other)),
        }
    }
    Ok(kept)
}
