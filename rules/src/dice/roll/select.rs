//! Keeping and dropping dice. Of equal dice those rolled last are dropped first.

use super::result::DieRoll;
use crate::dice::program::SMALL;

/// Applies `kh`, `kl`, `dh`, `dl` to the dice that still count.
pub(super) fn apply(dice: &mut [DieRoll], keep: bool, highest: bool, count: usize) {
    let present = dice.iter().filter(|die| die.kept).count();
    let gone = if keep { present.saturating_sub(count) } else { count.min(present) };
    let low_go = keep == highest;
    match gone {
        0 => {}
        1 => drop_one(dice, low_go),
        _ => drop_many(dice, present, gone, low_go),
    }
}

/// The order in which dice are dropped: smaller ranks first.
const fn rank(die: &DieRoll, low_go: bool) -> i32 {
    // Values are at least -2^31 + 1, so this does not overflow.
    if low_go { die.shown } else { -die.shown }
}

fn drop_one(dice: &mut [DieRoll], low_go: bool) {
    let gone = dice.iter_mut().rev().filter(|die| die.kept).min_by_key(|die| rank(die, low_go));
    if let Some(die) = gone {
        die.kept = false;
    }
}

fn drop_many(dice: &mut [DieRoll], present: usize, gone: usize, low_go: bool) {
    let ranks = dice.iter().filter(|die| die.kept).map(|die| rank(die, low_go));
    let last = if present <= SMALL {
        let mut few = [0; SMALL];
        few.iter_mut().zip(ranks).for_each(|(slot, rank)| *slot = rank);
        nth(few.get_mut(..present).unwrap_or_default(), gone)
    } else {
        nth(&mut ranks.collect::<Vec<_>>(), gone)
    };
    let Some(last) = last else { return };
    // Drop all dice below the last dropped rank, and as many dice of that rank as necessary, those rolled last first.
    let below = dice.iter().filter(|die| die.kept && rank(die, low_go) < last).count();
    let mut equal = gone.saturating_sub(below);
    for die in dice.iter_mut().rev().filter(|die| die.kept) {
        let rank = rank(die, low_go);
        if rank < last {
            die.kept = false;
        } else if rank == last && equal > 0 {
            die.kept = false;
            equal -= 1;
        }
    }
}

/// The `n`-th smallest rank, from 1.
fn nth(ranks: &mut [i32], n: usize) -> Option<i32> {
    let index = n.checked_sub(1)?;
    if index >= ranks.len() {
        return None;
    }
    Some(*ranks.select_nth_unstable(index).1)
}

/// The sum of the highest or lowest `kept` values.
pub(super) fn sum_kept_dice(values: &mut [i32], kept: usize, highest: bool) -> i64 {
    let all = |values: &[i32]| values.iter().map(|v| i64::from(*v)).sum::<i64>();
    let extreme = |values: &[i32], high: bool| {
        let found = if high { values.iter().max() } else { values.iter().min() };
        found.copied().map_or(0, i64::from)
    };
    let count = values.len();
    if kept >= count {
        all(values)
    } else if kept == 1 {
        extreme(values, highest)
    } else if kept + 1 == count {
        all(values) - extreme(values, !highest)
    } else {
        values.sort_unstable();
        let range = if highest { count - kept..count } else { 0..kept };
        all(values.get(range).unwrap_or_default())
    }
}
