//! Finds errors that a formula has whatever the dice show, without rolling any.
//!
//! It runs the steps with known values (numbers, variables and values computed from them) and stops at the first error. A value
//! that depends on a die is unknown here and never causes an error. Errors found here may contain values. Errors of a roll must
//! not, because they would reveal the dice.

use super::machine::{not_finite, variable_value};
use crate::dice::{
    Variables,
    error::Fault,
    limits::Limits,
    modifier::Modifier,
    program::{Operator, Program, Step, part},
    resolve,
};

/// Values; `None` if unknown.
struct Stack(Vec<Option<f64>>);

impl Stack {
    fn pop(&mut self) -> Option<f64> {
        self.0.pop().flatten()
    }

    /// Takes `count` values, if all of them are known.
    fn take(&mut self, count: usize) -> Option<Vec<f64>> {
        let rest = self.0.len().saturating_sub(count);
        self.0.split_off(rest).into_iter().collect()
    }
}

/// The error of every roll of this formula, if there is one for certain.
pub(in crate::dice) fn fault(
    program: &Program,
    source: &str,
    limits: &Limits,
    variables: &Variables<'_>,
) -> Option<Box<Fault>> {
    let mut known = Stack(Vec::with_capacity(program.stack_max as usize));
    for (step, at) in program.steps.iter().zip(&program.places) {
        let value = match *step {
            Step::Flavour(_) => continue,
            Step::Number(number) => Some(number),
            Step::Variable(index) => match variable_value(program, source, variables, index, *at) {
                Ok(value) => Some(value),
                Err(fault) => return Some(fault),
            },
            Step::Negate => known.pop().map(|value| -value),
            Step::Binary(operator) => {
                let (right, left) = (known.pop(), known.pop());
                let value = match (left, right) {
                    (Some(left), Some(right)) => Some(operator.apply(left, right)),
                    (None, Some(0.0)) if matches!(operator, Operator::Divide | Operator::Remainder) => Some(f64::NAN),
                    _ => None,
                };
                if value.is_some_and(|value| !value.is_finite()) {
                    return Some(not_finite(*at, right.map(|right| (operator, right))));
                }
                value
            }
            Step::Call(function, arguments) => {
                let value = known.take(arguments as usize).map(|values| function.apply(&values));
                if value.is_some_and(|value| !value.is_finite()) {
                    return Some(not_finite(*at, None));
                }
                value
            }
            Step::Dice(index) => {
                let Some(term) = program.terms.get(index as usize) else { continue };
                let computed = term.computed(program);
                if let Some(values) = known.take(computed)
                    && computed > 0
                    && let Err(fault) = resolve::term(term, part(&program.modifiers, &term.modifiers), &values, limits)
                {
                    return Some(fault);
                }
                None
            }
            Step::Pool(index) => {
                let Some(pool) = program.pools.get(index as usize) else { continue };
                let computed: usize = part(&program.modifiers, &pool.modifiers).iter().map(Modifier::computed).sum();
                known.take(pool.members as usize + computed);
                None
            }
        };
        known.0.push(value);
    }
    None
}
