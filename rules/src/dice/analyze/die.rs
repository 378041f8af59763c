//! How one die passes through the modifiers of its term.
//!
//! Without keep and drop, each die of a term passes through the modifiers independently. New dice that it causes (a reroll,
//! an explosion) pass through the rest. So we compute the distribution of what one die contributes; the sum of all dice follows
//! from it. With keep and drop, there is one die for each original die up to the first keep or drop (`arrive`).

use super::{
    lattice::Lattice,
    work::{Exact, Stop, Work},
};
use crate::dice::{
    error::{At, Outcome},
    limits::Limits,
    modifier::{Action, Test},
    resolve,
    roll::{Verdict, touch},
    sides::Sides,
};

/// Explosions are followed until another one is less likely than this.
const TAIL: f64 = 1e-15;

/// The cost of a die's state besides its modifiers.
const STATE_COST: usize = 200;

/// The state of a die as modifiers see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub(super) shown: i32,
    pub(super) counted: i32,
    pub(super) verdict: Verdict,
}

impl State {
    pub(super) const fn fresh(value: i32) -> Self {
        Self { shown: value, counted: value, verdict: Verdict::None }
    }

    pub(super) fn touch(&mut self, action: Action) {
        touch(action, &mut self.shown, &mut self.counted, &mut self.verdict);
    }
}

/// A term whose numbers are all known.
pub(super) struct Dice<'a> {
    pub(super) at: At,
    pub(super) count: u32,
    pub(super) sides: Sides,
    /// The actions without the final margin.
    pub(super) actions: &'a [Action],
    pub(super) limits: &'a Limits,
}

/// All values of a die, equally likely.
pub(super) fn fresh(sides: Sides) -> impl Iterator<Item = (State, f64)> + Clone {
    let (low, high) = sides.span();
    let weight = 1.0 / f64::from(sides.faces);
    (low..=high).map(move |value| (State::fresh(value), weight))
}

/// How dice pass through modifiers independently.
pub(super) struct Chain<'a> {
    actions: &'a [Action],
    /// For each action that rolls: what a new die adds, with all further dice that it causes.
    added: Vec<Lattice>,
}

impl<'a> Chain<'a> {
    /// Computes what new dice add, from the last action to the first.
    pub(super) fn new(dice: &Dice<'_>, actions: &'a [Action], work: &mut Work) -> Exact<Self> {
        let mut chain = Self { actions, added: vec![Lattice::empty(); actions.len()] };
        for (index, action) in actions.iter().enumerate().rev() {
            let added = match *action {
                Action::Reroll { again: false, .. } | Action::Explode { again: false, .. } => {
                    chain.share(fresh(dice.sides), index + 1, work)?
                }
                Action::Reroll { test, again: true, .. } => {
                    let (_, missed, chance) = split(dice, test)?;
                    let mut share = chain.share(missed, index + 1, work)?;
                    share.weights.iter_mut().for_each(|weight| *weight /= 1.0 - chance);
                    share
                }
                Action::Explode { test, again: true, .. } => chain.exploding(dice, test, index, work)?,
                Action::Select { .. } => return Err(Stop::TooMuch),
                _ => continue,
            };
            if let Some(slot) = chain.added.get_mut(index) {
                *slot = added;
            }
        }
        Ok(chain)
    }

    /// A die that may explode, as may the dice that it causes: the sum over the number of explosions.
    fn exploding(&self, dice: &Dice<'_>, test: Test, index: usize, work: &mut Work) -> Exact<Lattice> {
        let (passed, missed, chance) = split(dice, test)?;
        let last = self.share(missed, index + 1, work)?;
        let before = self.share(passed, index + 1, work)?;
        let (mut total, mut tail, mut left) = (last.clone(), last, 1.0);
        while left * chance > TAIL {
            left *= chance;
            tail = tail.plus(&before, work)?;
            total.accumulate(&tail, 0, 1.0, work)?;
        }
        total.whole &= chance == 0.0;
        Ok(total)
    }

    /// What dice in these states add to the total, from action `from` on.
    pub(super) fn share(
        &self,
        states: impl Iterator<Item = (State, f64)>,
        from: usize,
        work: &mut Work,
    ) -> Exact<Lattice> {
        // Dice that exploded at the same actions form a group: their own values, plus what their new dice add.
        let mut groups: Vec<(Vec<usize>, Lattice)> = Vec::new();
        for (mut state, weight) in states {
            work.charge(STATE_COST + self.actions.len().saturating_sub(from))?;
            let mut hits = Vec::new();
            let mut replaced = false;
            for (index, action) in self.actions.iter().enumerate().skip(from) {
                match *action {
                    Action::Reroll { test, .. } if test.holds_die(state.shown) => {
                        hits.push(index);
                        replaced = true;
                        break;
                    }
                    Action::Explode { test, .. } if test.holds_die(state.shown) => hits.push(index),
                    other => state.touch(other),
                }
            }
            let value = if replaced { 0 } else { i64::from(state.counted) };
            match groups.iter_mut().find(|(group, _)| *group == hits) {
                Some((_, lattice)) => lattice.put(value, weight, work)?,
                None => {
                    work.charge(hits.len() * 8)?;
                    groups.push((hits, Lattice::point(value, weight)));
                }
            }
        }
        let mut total = Lattice::empty();
        for (hits, mut lattice) in groups {
            for index in hits {
                let added = self.added.get(index).ok_or(Stop::TooMuch)?;
                lattice = lattice.plus(added, work)?;
            }
            total.accumulate(&lattice, 0, 1.0, work)?;
        }
        Ok(total)
    }
}

type Part = std::vec::IntoIter<(State, f64)>;

/// Splits new dice into those that pass a test and those that do not, with the probability of passing. If (nearly) all pass
/// again and again, the error of a roll.
fn split(dice: &Dice<'_>, test: Test) -> Outcome<(Part, Part, f64)> {
    let (passed, missed): (Vec<_>, Vec<_>) = fresh(dice.sides).partition(|(state, _)| test.holds_die(state.shown));
    let chance = passed.len() as f64 / f64::from(dice.sides.faces);
    let expected = f64::from(dice.count) * chance / (1.0 - chance);
    if missed.is_empty() || expected > f64::from(dice.limits.extra_dice_per_term_max) {
        return Err(resolve::too_many_extra(dice.at, dice.limits));
    }
    Ok((passed.into_iter(), missed.into_iter(), chance))
}

/// The states of single dice after modifiers that add none, by value.
pub(super) fn arrive(dice: &Dice<'_>, actions: &[Action], work: &mut Work) -> Exact<Vec<(State, f64)>> {
    // The probability that each reroll causes a die, which then passes through the rest.
    let mut falling = vec![(0.0, None); actions.len()];
    let mut arrived: Vec<(State, f64)> = Vec::new();
    let mut walk = |state: State, weight: f64, from: usize, falling: &mut Vec<(f64, Option<Test>)>| -> Exact<()> {
        let mut state = state;
        work.charge(STATE_COST + actions.len().saturating_sub(from))?;
        for (index, action) in actions.iter().enumerate().skip(from) {
            match *action {
                Action::Reroll { test, again, .. } if test.holds_die(state.shown) => {
                    if let Some(slot) = falling.get_mut(index) {
                        *slot = (slot.0 + weight, again.then_some(test));
                    }
                    return Ok(());
                }
                Action::Explode { .. } => return Err(Stop::TooMuch),
                other => state.touch(other),
            }
        }
        arrived.push((state, weight));
        Ok(())
    };
    for (state, weight) in fresh(dice.sides) {
        walk(state, weight, 0, &mut falling)?;
    }
    for index in 0..actions.len() {
        let Some((weight, until)) = falling.get(index).copied().filter(|(weight, _)| *weight > 0.0) else { continue };
        let chance = match until {
            Some(test) => split(dice, test)?.2,
            None => 0.0,
        };
        for (state, share) in fresh(dice.sides) {
            if until.is_none_or(|test| !test.holds_die(state.shown)) {
                walk(state, weight * share / (1.0 - chance), index + 1, &mut falling)?;
            }
        }
    }
    work.charge(arrived.len() * 100)?;
    arrived.sort_by_key(|(state, _)| (state.shown, state.counted, state.verdict as u8));
    arrived.dedup_by(|next, first| {
        let same = next.0 == first.0;
        first.1 += if same { next.1 } else { 0.0 };
        same
    });
    Ok(arrived)
}
