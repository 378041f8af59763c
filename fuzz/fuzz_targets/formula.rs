//! Any text as a formula: it is parsed or rejected, and a parsed one can be rolled, analyzed and written again, quickly
//! and without a panic. The first byte seeds the dice, and the rest is the formula.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::dice::{FairSeed, Formula, Given};

fn variables(name: &str) -> Option<f64> {
    match name.len() {
        0..=2 => Some(3.0),
        3 => Some(-2.5),
        4 => Some(0.0),
        _ => None,
    }
}

fuzz_target!(|data: (u8, &str)| {
    let (seed, text) = data;
    let formula = match Formula::parse(text) {
        Ok(formula) => formula,
        Err(error) => {
            assert!(error.position <= text.chars().count());
            return;
        }
    };
    let fair = FairSeed::new(&[seed; 32], "fuzz");
    let rolled = formula.roll(&mut fair.roll(0), &variables);
    let total = formula.total(&mut fair.roll(0), &variables);
    assert_eq!(rolled.as_ref().map(|roll| roll.total), total.as_ref().copied());
    let _ = formula.roll(&mut Given::new(&[u32::from(seed)]), &variables);
    if let (Ok(roll), Ok(statistics)) = (&rolled, formula.analyze(&variables, 1)) {
        let slack = 1e-9 * roll.total.abs().max(1.0);
        assert!(statistics.min.is_none_or(|min| min <= roll.total + slack));
        assert!(statistics.max.is_none_or(|max| max >= roll.total - slack));
    }
    // Spaces and brackets may make the canonical form longer than a formula may be.
    let canonical = formula.to_string();
    if let (Ok(again), Ok(total)) = (Formula::parse(&canonical), total) {
        assert_eq!(again.total(&mut fair.roll(0), &variables), Ok(total));
    }
});
