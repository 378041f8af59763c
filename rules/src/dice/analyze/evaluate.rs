//! Exact evaluation: runs a formula's steps with distributions instead of numbers. All terms are independent of each other.

use super::{
    die,
    distribution::Distribution,
    pool, term,
    work::{Exact, Stop, Work},
};
use crate::dice::{
    Formula, Variables,
    error::At,
    function::Function,
    modifier::Action,
    program::{Operator, Plan, Program, Step, Term, part},
    resolve::{self, Resolved},
    roll,
    sides::Sides,
};

/// The most combinations of computed counts, faces and targets that are enumerated.
const COMBINATIONS_MAX: usize = 4_000;

/// The distribution of a formula's total.
pub(super) fn evaluate(formula: &Formula, variables: &Variables<'_>, work: &mut Work) -> Exact<Distribution> {
    let program = &formula.program;
    let mut stack: Vec<Distribution> = Vec::new();
    let mut dice = 0_u32;
    for (step, at) in program.steps.iter().zip(&program.places) {
        let result = match *step {
            Step::Number(number) => Distribution::constant(number),
            Step::Variable(index) => {
                Distribution::constant(roll::variable_value(program, &formula.source, variables, index, *at)?)
            }
            Step::Negate => pop(&mut stack)?.negated(),
            Step::Binary(operator) => {
                let right = pop(&mut stack)?;
                binary(operator, &pop(&mut stack)?, &right, *at, work)?
            }
            Step::Call(function, arguments) => {
                let arguments = take(&mut stack, arguments as usize);
                call(function, &arguments, *at, work)?
            }
            Step::Dice(index) => {
                let term = program.terms.get(index as usize).ok_or(Stop::TooMuch)?;
                let computed = take(&mut stack, term.computed(program));
                let (least, total) = dice_term(formula, term, &computed, work)?;
                dice = dice.saturating_add(least);
                if dice > formula.limits.dice_per_formula_max {
                    return Err(resolve::too_many_dice(*at, &formula.limits).into());
                }
                total
            }
            Step::Pool(index) => {
                let one = program.pools.get(index as usize).ok_or(Stop::TooMuch)?;
                let targets = part(&program.modifiers, &one.modifiers).iter().map(|m| m.computed()).sum();
                let computed = take(&mut stack, targets);
                let members = take(&mut stack, one.members as usize);
                pool_term(program, one, &members, &computed, work)?
            }
            Step::Flavour(_) => continue,
        };
        stack.push(result);
    }
    pop(&mut stack)
}

fn pop(stack: &mut Vec<Distribution>) -> Exact<Distribution> {
    stack.pop().ok_or(Stop::TooMuch)
}

fn take(stack: &mut Vec<Distribution>, count: usize) -> Vec<Distribution> {
    stack.split_off(stack.len().saturating_sub(count))
}

fn binary(
    operator: Operator,
    left: &Distribution,
    right: &Distribution,
    at: At,
    work: &mut Work,
) -> Exact<Distribution> {
    let apply = |a: f64, b: f64| {
        let value = operator.apply(a, b);
        if value.is_finite() { Ok(value) } else { Err(roll::not_finite(at, Some((operator, b))).into()) }
    };
    match operator {
        Operator::Add => left.plus(right, false, work),
        Operator::Subtract => left.plus(right, true, work),
        Operator::Multiply | Operator::Divide | Operator::Remainder => left.combine(right, apply, work),
    }
}

fn call(function: Function, arguments: &[Distribution], at: At, work: &mut Work) -> Exact<Distribution> {
    let finite = |value: f64| {
        if value.is_finite() { Ok(value) } else { Err(roll::not_finite(at, None).into()) }
    };
    match (arguments, function) {
        ([one], _) => one.map(|value| finite(function.apply(&[value])), work),
        // These functions can be applied to their arguments one by one.
        ([first, rest @ ..], Function::Max | Function::Min | Function::Hypot) => rest
            .iter()
            .try_fold(first.clone(), |so_far, next| so_far.combine(next, |a, b| finite(function.apply(&[a, b])), work)),
        ([a, b], _) => a.combine(b, |x, y| finite(function.apply(&[x, y])), work),
        ([value, low, high], Function::Clamp) => {
            let above = value.combine(low, |v, l| Ok(v.max(l)), work)?;
            above.combine(high, |v, h| Ok(v.min(h)), work)
        }
        _ => Err(Stop::TooMuch),
    }
}

/// The smallest number of dice of a term, and the distribution of its total.
fn dice_term(formula: &Formula, term: &Term, computed: &[Distribution], work: &mut Work) -> Exact<(u32, Distribution)> {
    let program = &formula.program;
    if let Plan::Ready { count, faces, first, end, .. } = term.plan {
        let actions = part(&program.actions, &(first..end));
        let sides = Sides { kind: term.kind, faces };
        return Ok((0, resolved_term(formula, term.at, count, sides, actions, work)?));
    }
    let modifiers = part(&program.modifiers, &term.modifiers);
    let mut least = u32::MAX;
    let mixture = mix(computed, work, |numbers, work| {
        let Resolved { count, sides, actions } = resolve::term(term, modifiers, numbers, &formula.limits)?;
        least = least.min(count);
        resolved_term(formula, term.at, count, sides, &actions, work)
    })?;
    // The parser adds up written counts itself.
    Ok((if term.count.is_computed() { least } else { 0 }, mixture))
}

fn resolved_term(
    formula: &Formula,
    at: At,
    count: u32,
    sides: Sides,
    actions: &[Action],
    work: &mut Work,
) -> Exact<Distribution> {
    let (actions, margin) = match actions {
        [rest @ .., Action::Margin { target, below }] => (rest, Some((*target, *below))),
        all => (all, None),
    };
    let dice = die::Dice { at, count, sides, actions, limits: &formula.limits };
    let total = Distribution::from_lattice(&term::total(&dice, work)?);
    match margin {
        None => Ok(total),
        Some((target, false)) => total.plus(&Distribution::constant(target), true, work),
        Some((target, true)) => Distribution::constant(target).plus(&total, true, work),
    }
}

fn pool_term(
    program: &Program,
    pool: &crate::dice::program::Pool,
    members: &[Distribution],
    computed: &[Distribution],
    work: &mut Work,
) -> Exact<Distribution> {
    if let Some(range) = &pool.actions {
        return pool::total(members, part(&program.actions, range), work);
    }
    mix(computed, work, |numbers, work| {
        let actions = roll::late_actions(program, pool, numbers.iter().copied())?;
        pool::total(members, &actions, work)
    })
}

/// The mixture over all possible values of the computed numbers.
fn mix(
    computed: &[Distribution],
    work: &mut Work,
    mut of: impl FnMut(&[f64], &mut Work) -> Exact<Distribution>,
) -> Exact<Distribution> {
    let combinations = computed.iter().try_fold(1_usize, |n, d| n.checked_mul(d.points.len()));
    if combinations.is_none_or(|n| n > COMBINATIONS_MAX) {
        return Err(Stop::TooMuch);
    }
    let mut whole = computed.iter().all(|d| d.whole);
    let mut points = Vec::new();
    for index in 0..combinations.unwrap_or(0) {
        let (mut rest, mut weight) = (index, 1.0);
        let mut numbers = Vec::with_capacity(computed.len());
        for distribution in computed {
            let (value, p) = distribution.points.get(rest % distribution.points.len()).ok_or(Stop::TooMuch)?;
            rest /= distribution.points.len();
            weight *= p;
            numbers.push(*value);
        }
        let one = of(&numbers, work)?;
        work.charge(one.points.len() * 64 + 2_000)?;
        whole &= one.whole;
        points.extend(one.points.into_iter().map(|(value, p)| (value, p * weight)));
    }
    Distribution::gather(points, whole)
}
