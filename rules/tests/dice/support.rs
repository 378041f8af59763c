//! Shorthand for tests of dice.

use rules::dice::{Formula, FormulaError, Given, Roll, no_variables};

/// Some variables of a roller.
pub fn variables(name: &str) -> Option<f64> {
    match name {
        "prof" => Some(3.0),
        "level" => Some(5.0),
        "zero" => Some(0.0),
        "half" => Some(0.5),
        "minus" => Some(-2.0),
        "abilities.dex.mod" => Some(2.0),
        "classes.rogue.levels" => Some(4.0),
        "infinite" => Some(f64::INFINITY),
        _ => None,
    }
}

/// Parses a valid formula.
pub fn parse(formula: &str) -> Formula {
    Formula::parse(formula).unwrap_or_else(|error| panic!("{formula}: {error}"))
}

/// Rolls a formula with these dice, all of which must be used.
pub fn roll(formula: &str, given: &[u32]) -> Roll {
    let mut dice = Given::new(given);
    let parsed = parse(formula);
    let roll = parsed.roll(&mut dice, &variables).unwrap_or_else(|error| panic!("{formula}: {error}"));
    assert!(dice.unused().is_empty(), "{formula}: left over {:?}", dice.unused());
    let total = parsed.total(&mut Given::new(given), &variables);
    assert_eq!(total, Ok(roll.total), "{formula}: the total alone");
    roll
}

/// The total of a formula with these dice.
pub fn total(formula: &str, given: &[u32]) -> f64 {
    roll(formula, given).total
}

/// The error of a formula that cannot be parsed, or cannot be rolled with ones.
pub fn error(formula: &str) -> FormulaError {
    let parsed = match Formula::parse(formula) {
        Ok(parsed) => parsed,
        Err(error) => return error,
    };
    let ones = [1; 12_000];
    match parsed.roll(&mut Given::new(&ones), &variables) {
        Ok(roll) => panic!("{formula} is accepted: {}", roll.total),
        Err(error) => error,
    }
}

/// The canonical form of a formula.
pub fn canonical(formula: &str) -> String {
    parse(formula).to_string()
}

/// Rolls without variables.
pub fn plain(formula: &str, given: &[u32]) -> f64 {
    parse(formula).total(&mut Given::new(given), &no_variables).unwrap_or_else(|error| panic!("{formula}: {error}"))
}
