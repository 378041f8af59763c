//! Statistics by rolling, for formulas that cannot be computed exactly. The number of rolls depends on a fixed amount
//! of work.

use crate::dice::{Dice, Formula, OutOfDice, Variables, error::Outcome, program::Program, roll};

/// The most rolls.
const ROLLS_MAX: usize = 50_000;
/// The most dice, and steps of modifiers over dice, of all rolls together.
const WORK_MAX: u64 = 1_500_000;
/// The number of bars of the histogram if there are more different totals than that.
const BARS: usize = 1_000;

/// Dice from a seed, the same on every machine and in every version. It mixes a counter until each bit depends on all
/// of its bits.
struct Mixer {
    counter: u64,
    drawn: u64,
}

impl Mixer {
    fn next(&mut self) -> u32 {
        self.counter = self.counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.counter;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) >> 32) as u32
    }
}

impl Dice for Mixer {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        self.drawn += 1;
        // The bias is less than faces / 2^32, far below what this many rolls can show.
        Ok(((u64::from(self.next()) * u64::from(faces.max(1))) >> 32) as u32 + 1)
    }
}

/// Totals in rising order, with the fraction of the rolls that had each.
pub(super) struct Sample {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// Rolls a formula many times. Fails as a roll does.
pub(super) fn simulate(formula: &Formula, variables: &Variables<'_>, seed: u64) -> Outcome<Sample> {
    let program = &formula.program;
    let mut dice = Mixer { counter: seed, drawn: 0 };
    let mut totals = Vec::new();
    let (mut spent, passes) = (0, passes(program));
    while totals.len() < ROLLS_MAX && spent < WORK_MAX {
        totals.push(roll::total(program, &formula.source, &formula.limits, &mut dice, variables)?);
        spent = dice.drawn * passes + totals.len() as u64 * (program.steps.len() as u64 * 4 + 16);
    }
    totals.sort_unstable_by(f64::total_cmp);
    let count = totals.len() as f64;
    let mean = totals.iter().map(|total| total / count).sum::<f64>();
    let variance = totals.iter().map(|total| (total - mean) * (total - mean) / count).sum::<f64>();
    Ok(Sample { points: shares(&totals), mean, deviation: variance.sqrt() })
}

/// How often a die is examined at most.
fn passes(program: &Program) -> u64 {
    let longest = program.terms.iter().map(|term| u64::from(term.modifiers.end - term.modifiers.start)).max();
    1 + longest.unwrap_or(0)
}

/// The frequency of each total, or of each of a thousand ranges, which are represented by their middles.
fn shares(totals: &[f64]) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / totals.len() as f64;
    let exact: Vec<_> = totals.chunk_by(|a, b| a == b).map(|c| (c.first().copied(), share(c.len()))).collect();
    if exact.len() <= BARS {
        return exact.into_iter().filter_map(|(total, share)| Some((total?, share))).collect();
    }
    let (Some(low), Some(high)) = (totals.first(), totals.last()) else { return Vec::new() };
    // Divide first, because the whole range may be too large for a number.
    let width = high / BARS as f64 - low / BARS as f64;
    let bar = |total: &f64| (((total / width) - (low / width)) as usize).min(BARS - 1);
    totals
        .chunk_by(|a, b| bar(a) == bar(b))
        .filter_map(|chunk| Some((low + (bar(chunk.first()?) as f64 + 0.5) * width, share(chunk.len()))))
        .collect()
}
