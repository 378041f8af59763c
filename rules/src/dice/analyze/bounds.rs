//! The lowest and highest total, by interval arithmetic. The result is never too narrow, and exact for sums, products and rising
//! functions.

use super::{
    dice_bounds,
    interval::{Interval, numbers},
};
use crate::dice::{
    Formula, Variables,
    error::Outcome,
    function::Function,
    modifier::{Action, Modifier, Name},
    program::{Operator, Pool, Program, Step, part},
    roll::{self, Member, apply_to_members, members_sum},
};

/// The bounds of a formula.
pub(super) fn bounds(formula: &Formula, variables: &Variables<'_>) -> Outcome<Interval> {
    let program = &formula.program;
    let mut stack: Vec<Interval> = Vec::new();
    for (step, at) in program.steps.iter().zip(&program.places) {
        let interval = match *step {
            Step::Number(number) => Interval::point(number),
            Step::Variable(index) => {
                Interval::point(roll::variable_value(program, &formula.source, variables, index, *at)?)
            }
            Step::Negate => {
                let Interval { low, high } = pop(&mut stack);
                Interval { low: -high, high: -low }
            }
            Step::Binary(operator) => {
                let right = pop(&mut stack);
                binary(operator, pop(&mut stack), right)
            }
            Step::Call(function, arguments) => call(function, &take(&mut stack, arguments as usize)),
            Step::Dice(index) => match program.terms.get(index as usize) {
                Some(term) => {
                    let computed = take(&mut stack, term.computed(program));
                    dice_bounds::bounds(program, term, &computed, &formula.limits)
                }
                None => Interval::ANY,
            },
            Step::Pool(index) => match program.pools.get(index as usize) {
                Some(one) => pool(program, one, &mut stack),
                None => Interval::ANY,
            },
            Step::Flavour(_) => continue,
        };
        stack.push(interval);
    }
    Ok(pop(&mut stack))
}

fn pop(stack: &mut Vec<Interval>) -> Interval {
    stack.pop().unwrap_or(Interval::ANY)
}

fn take(stack: &mut Vec<Interval>, count: usize) -> Vec<Interval> {
    stack.split_off(stack.len().saturating_sub(count))
}

fn binary(operator: Operator, left: Interval, right: Interval) -> Interval {
    match operator {
        Operator::Add => Interval::of(left.low + right.low, left.high + right.high),
        Operator::Subtract => Interval::of(left.low - right.high, left.high - right.low),
        Operator::Multiply => left.corners(right, |a, b| a * b),
        Operator::Divide if right.contains(0.0) => Interval::ANY,
        Operator::Divide => left.corners(right, |a, b| a / b),
        Operator::Remainder => {
            // A remainder is at least as close to zero as the left side, closer than the right side, and has the sign
            // of the left.
            let most = right.low.abs().max(right.high.abs());
            Interval { low: left.low.max(-most).min(0.0), high: left.high.min(most).max(0.0) }
        }
    }
}

fn call(function: Function, arguments: &[Interval]) -> Interval {
    let lows: Vec<f64> = arguments.iter().map(|i| i.low).collect();
    let highs: Vec<f64> = arguments.iter().map(|i| i.high).collect();
    if function.rises() || function == Function::Clamp || lows == highs {
        return Interval::of(function.apply(&lows), function.apply(&highs));
    }
    match (function, arguments) {
        (Function::Abs, [one]) => {
            let most = one.low.abs().max(one.high.abs());
            let least = if one.contains(0.0) { 0.0 } else { one.low.abs().min(one.high.abs()) };
            Interval { low: least, high: most }
        }
        (Function::Sin | Function::Cos, _) => Interval { low: -1.0, high: 1.0 },
        (Function::Hypot | Function::Acosh | Function::Cosh, _) => Interval { low: 0.0, high: f64::INFINITY },
        (Function::Clz32, _) => Interval { low: 0.0, high: 32.0 },
        (Function::Acos | Function::Asin | Function::Atan2, _) => Interval { low: -3.2, high: 3.2 },
        (Function::Imul, _) => Interval { low: f64::from(i32::MIN), high: f64::from(i32::MAX) },
        _ => Interval::ANY,
    }
}

/// A sum over ranks never falls when a member rises, so the bounds of all members give its bounds.
fn pool(program: &Program, pool: &Pool, stack: &mut Vec<Interval>) -> Interval {
    let modifiers = part(&program.modifiers, &pool.modifiers);
    let computed = take(stack, modifiers.iter().map(Modifier::computed).sum());
    let members = take(stack, pool.members as usize);
    if modifiers.iter().any(|m| matches!(m.name, Name::CountSuccess | Name::CountFailure)) {
        return Interval { low: 0.0, high: members.len() as f64 };
    }
    let mut computed = computed.into_iter();
    let mut actions = Vec::with_capacity(modifiers.len());
    for modifier in modifiers {
        let count = match numbers(modifier, &mut computed).1 {
            None => 1.0,
            Some(Interval { low, high }) if low == high => low,
            Some(_) => return any_part(&members),
        };
        let highest = matches!(modifier.name, Name::Keep | Name::KeepHighest | Name::DropHighest);
        let keep = matches!(modifier.name, Name::Keep | Name::KeepHighest | Name::KeepLowest);
        actions.push(Action::Select { keep, highest, count: count as u32 });
    }
    let sum = |values: &dyn Fn(&Interval) -> f64| {
        let mut list: Vec<Member> = members.iter().map(|m| Member::new(values(m))).collect();
        apply_to_members(&actions, &mut list);
        members_sum(&list)
    };
    Interval::of(sum(&|m| m.low), sum(&|m| m.high))
}

/// The bounds if any of the members may be dropped.
fn any_part(members: &[Interval]) -> Interval {
    let low = members.iter().map(|m| m.low.min(0.0)).sum();
    Interval { low, high: members.iter().map(|m| m.high.max(0.0)).sum() }
}
