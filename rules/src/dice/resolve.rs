//! Checks counts, faces and targets that are only known at the roll, for the parser, rolls and statistics.

use super::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    limits::Limits,
    modifier::{Action, Modifier, Numbers, Operand},
    program::Term,
    sides::Sides,
};

/// Checks a number of dice.
pub(super) fn count(number: f64, at: At, limits: &Limits) -> Outcome<u32> {
    if number > f64::from(limits.dice_per_term_max) {
        let message = format!("{number} dice in one term, but at most {} are allowed", limits.dice_per_term_max);
        return Err(Fault::new(FormulaErrorKind::TooManyDice, at, message).hint("Roll fewer dice, or several rolls."));
    }
    if number < 0.0 || number.fract() != 0.0 || number.is_nan() {
        return Err(Fault::new(FormulaErrorKind::Count, at, format!("{number} is not a number of dice"))
            .expected("a whole number, at least 0")
            .hint("Use floor(…) to get a whole number and max(0, …) to avoid negative numbers."));
    }
    Ok(number as u32)
}

/// Checks a number of faces.
pub(super) fn faces(number: f64, at: At, limits: &Limits) -> Outcome<u32> {
    if number > f64::from(limits.faces_max) {
        let message = format!("a die with {number} faces, but at most {} are allowed", limits.faces_max);
        return Err(Fault::new(FormulaErrorKind::Faces, at, message));
    }
    if number < 1.0 || number.fract() != 0.0 || number.is_nan() {
        return Err(Fault::new(FormulaErrorKind::Faces, at, format!("a die with {number} faces cannot be rolled"))
            .expected("a whole number of faces, at least 1"));
    }
    Ok(number as u32)
}

/// The error for more dice than a formula may roll.
#[cold]
pub(super) fn too_many_dice(at: At, limits: &Limits) -> Box<Fault> {
    let message = format!("more than {} dice in one formula", limits.dice_per_formula_max);
    Fault::new(FormulaErrorKind::TooManyDice, at, message).hint("Roll fewer dice, or several rolls.")
}

/// The error for more added dice than a term may have.
#[cold]
pub(super) fn too_many_extra(at: At, limits: &Limits) -> Box<Fault> {
    let message = format!("explosions and rerolls added more than {} dice to one term", limits.extra_dice_per_term_max);
    Fault::new(FormulaErrorKind::TooManyDice, at, message)
        .hint("Let fewer results explode or be rerolled, or limit their number: x3=6, rr2=1.")
}

/// A term whose numbers are all known.
pub(super) struct Resolved {
    pub(super) count: u32,
    pub(super) sides: Sides,
    pub(super) actions: Vec<Action>,
}

/// Resolves a term with its computed numbers, in their order on the stack.
pub(super) fn term(term: &Term, modifiers: &[Modifier], computed: &[f64], limits: &Limits) -> Outcome<Resolved> {
    let mut computed = computed.iter().copied();
    let mut number = |operand| match operand {
        Operand::Value(number) => number,
        Operand::Stack => computed.next().unwrap_or(f64::NAN),
    };
    let dice = count(number(term.count), term.at, limits)?;
    let faces = faces(number(term.faces), term.faces_at, limits)?;
    let sides = Sides { kind: term.kind, faces };
    Ok(Resolved { count: dice, sides, actions: actions(modifiers, computed, sides)? })
}

/// Resolves the modifiers with their computed numbers, in order.
pub(super) fn actions(
    modifiers: &[Modifier],
    computed: impl IntoIterator<Item = f64>,
    sides: Sides,
) -> Outcome<Vec<Action>> {
    let mut computed = computed.into_iter();
    let mut number = |operand: Option<Operand>| match operand? {
        Operand::Value(number) => Some(number),
        Operand::Stack => computed.next(),
    };
    let mut counted = false;
    let mut actions = Vec::with_capacity(modifiers.len());
    for modifier in modifiers {
        let numbers = Numbers { limit: number(modifier.limit), operand: number(modifier.operand) };
        let action = modifier.resolve(numbers, sides, counted)?;
        counted |= matches!(action, Action::Count { .. });
        actions.push(action);
    }
    Ok(actions)
}
