//! The stack machine that runs the steps of a [`Program`] and rolls dice.
//!
//! It is generic over `RECORD`: with it every die is recorded for the result, without it only the total is computed.
//! Both draw the same dice in the same order.

use super::{
    dice::Table,
    pool,
    result::DieRoll,
    stack::{Slot, Stack},
};
use crate::dice::{
    Dice, Variables,
    error::{At, Fault, FormulaErrorKind, Outcome},
    limits::Limits,
    program::{Operator, Program, Step, part},
};

/// What a roll needs in addition to the formula.
pub(super) struct Surroundings<'a> {
    pub(super) source: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) variables: &'a Variables<'a>,
}

/// A computed term with a flavour: its index, its total, its first die.
pub(super) type Named = (u32, f64, u32);

/// Runs a program. `tray` receives the dice; without `RECORD` it is only scratch space.
pub(super) fn run<D: Dice, const RECORD: bool>(
    program: &Program,
    around: &Surroundings<'_>,
    dice: &mut D,
    tray: &mut Vec<DieRoll>,
    named: &mut dyn FnMut(Named, usize),
    mut stack: Stack<'_>,
) -> Outcome<f64> {
    let mut table = Table { dice, tray, limits: around.limits, drawn: 0 };
    for (step, at) in program.steps.iter().zip(&program.places) {
        let first = table.tray.len() as u32;
        match *step {
            Step::Number(number) => stack.push(number, first),
            Step::Dice(index) => {
                let Some(term) = program.terms.get(index as usize) else { continue };
                let computed = stack.take(term.computed(program));
                let first = computed.first().map_or(first, |slot| slot.first);
                let total = table.term::<RECORD>(program, term, computed)?;
                stack.push(total, first);
            }
            Step::Binary(operator) => {
                let right = stack.pop().value;
                if let Some(left) = stack.top() {
                    left.value = finite(operator.apply(left.value, right), *at, Some((operator, right)))?;
                }
            }
            Step::Negate => {
                if let Some(slot) = stack.top() {
                    slot.value = -slot.value;
                }
            }
            Step::Variable(index) => stack.push(variable(program, around, index, *at)?, first),
            Step::Call(function, arguments) => {
                let slots = stack.take(arguments as usize);
                let first = slots.first().map_or(first, |slot| slot.first);
                let value = call(function, slots);
                stack.push(finite(value, *at, None)?, first);
            }
            Step::Pool(index) => {
                let Some(pool) = program.pools.get(index as usize) else { continue };
                let written = part(&program.modifiers, &pool.modifiers);
                let computed: usize = written.iter().map(crate::dice::modifier::Modifier::computed).sum();
                let slots = stack.take(pool.members as usize + computed);
                let first = slots.first().map_or(first, |slot| slot.first);
                let tray: &mut [DieRoll] = if RECORD { table.tray } else { &mut [] };
                let total = pool::total(program, pool, slots, tray)?;
                stack.push(finite(total, *at, None)?, first);
            }
            Step::Flavour(index) => {
                if let (true, Some(slot)) = (RECORD, stack.top()) {
                    named((index, slot.value, slot.first), table.tray.len());
                }
            }
        }
    }
    // Adding zero turns negative zero into zero.
    Ok(stack.pop().value + 0.0)
}

#[inline]
fn finite(value: f64, at: At, operation: Option<(Operator, f64)>) -> Outcome<f64> {
    if value.is_finite() { Ok(value) } else { Err(not_finite(at, operation)) }
}

/// The error for a result that is not finite.
#[cold]
pub(in crate::dice) fn not_finite(at: At, operation: Option<(Operator, f64)>) -> Box<Fault> {
    if let Some((Operator::Divide | Operator::Remainder, 0.0)) = operation {
        return Fault::new(FormulaErrorKind::DivisionByZero, at, "a division by zero")
            .expected("a divisor that is not 0")
            .hint("Use max(1, …) for a divisor that may become 0.");
    }
    Fault::new(FormulaErrorKind::NotFinite, at, "the result is not a finite number").expected("a finite result")
}

fn call(function: crate::dice::function::Function, slots: &[Slot]) -> f64 {
    // Use the stack for common functions. Only long lists for max, min and hypot are allocated.
    let mut few = [0.0; 4];
    if let Some(values) = few.get_mut(..slots.len()) {
        for (value, slot) in values.iter_mut().zip(slots) {
            *value = slot.value;
        }
        return function.apply(values);
    }
    let values: Vec<f64> = slots.iter().map(|slot| slot.value).collect();
    function.apply(&values)
}

/// The value of a variable.
pub(in crate::dice) fn variable_value(
    program: &Program,
    source: &str,
    variables: &Variables<'_>,
    index: u32,
    at: At,
) -> Outcome<f64> {
    let range = program.variables.get(index as usize).cloned().unwrap_or_default();
    let name = source.get(range.start as usize..range.end as usize).unwrap_or_default();
    match variables(name) {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(Fault::new(FormulaErrorKind::NotFinite, at, format!("@{} is not a finite number", clip(name)))),
        None => Err(Fault::new(FormulaErrorKind::UnknownVariable, at, format!("the roller has no @{}", clip(name)))
            .expected("a variable of the roller, such as @prof, @level or @abilities.dex.mod")
            .hint("Use a variable that exists, or write the number itself.")),
    }
}

/// The beginning of a name, because an error must not repeat a long text.
fn clip(name: &str) -> &str {
    name.get(..80).unwrap_or(name)
}

fn variable(program: &Program, around: &Surroundings<'_>, index: u32, at: At) -> Outcome<f64> {
    variable_value(program, around.source, around.variables, index, at)
}
