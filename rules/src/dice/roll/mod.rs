//! Rolls a formula with dice from the given source only.
//!
//! `certain` finds errors without dice; `machine` runs the steps on a `stack`, with `dice` and `pool` for their steps;
//! `select` keeps and drops dice; `result` has the result.

mod certain;
mod dice;
mod machine;
mod pool;
mod result;
mod select;
mod stack;

use std::sync::Arc;

pub use result::{DieRoll, Flavour, Roll, Verdict};

pub(super) use certain::fault as certain_fault;
pub(super) use dice::touch;
pub(super) use machine::{not_finite, variable_value};
pub(super) use pool::{Member, apply as apply_to_members, late_actions, sum as members_sum};
pub(super) use result::{number, optional_number, pairs};

use super::{Dice, Variables, error::Outcome, limits::Limits, program::Program};
use machine::Surroundings;
use stack::{Slot, Stack};

/// The number of values that need no allocation.
const STACK: usize = 16;

/// Rolls and reports every die. Replaces the previous content of the result.
pub(super) fn report<D: Dice>(
    program: &Program,
    (source, flavours): (&str, &[Arc<str>]),
    limits: &Limits,
    dice: &mut D,
    variables: &Variables<'_>,
    roll: &mut Roll,
) -> Outcome<()> {
    roll.total = 0.0;
    roll.dice.clear();
    roll.flavours.clear();
    let around = Surroundings { source, limits, variables };
    let named = &mut roll.flavours;
    let mut name = |(index, total, first): machine::Named, dice: usize| {
        let Some(text) = flavours.get(index as usize) else { return };
        let first_die = first as usize;
        named.push(Flavour { text: Arc::clone(text), total, first_die, dice: dice - first_die });
    };
    let mut few = [Slot::default(); STACK];
    let slots = slots(&mut few, &mut roll.stack, program.stack_max as usize);
    roll.total = machine::run::<D, true>(program, &around, dice, &mut roll.dice, &mut name, Stack::new(slots))?;
    Ok(())
}

/// Rolls and computes only the total.
pub(super) fn total<D: Dice>(
    program: &Program,
    source: &str,
    limits: &Limits,
    dice: &mut D,
    variables: &Variables<'_>,
) -> Outcome<f64> {
    let around = Surroundings { source, limits, variables };
    let mut few = [Slot::default(); STACK];
    let mut many = Vec::new();
    let slots = slots(&mut few, &mut many, program.stack_max as usize);
    machine::run::<D, false>(program, &around, dice, &mut Vec::new(), &mut |_, _| {}, Stack::new(slots))
}

fn slots<'a>(few: &'a mut [Slot; STACK], many: &'a mut Vec<Slot>, needed: usize) -> &'a mut [Slot] {
    if needed <= STACK {
        return few;
    }
    many.resize(needed, Slot::default());
    many
}
