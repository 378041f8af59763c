//! Dice that a frontend rolled. We accept only rolls that are possible: we evaluate the formula ourselves with the reported dice.
//! It must use all of them, show the same values and come to the same total.

use rules::dice::{Dice, Formula, OutOfDice, Roll, no_variables};
use serde::Deserialize;
use serde_json::{Number, Value};

use super::rolls::{RollError, RollInput, Rolled, whole};
use base::clock;

/// The most dice of one roll.
const DICE_MAX: usize = 1000;
/// The most terms whose dice may be reported in another order than the formula has them. A frontend may roll terms in
/// parentheses first.
const SHUFFLED_TERMS_MAX: usize = 5;
const WORDS_CHARS_MAX: usize = 300;

/// One roll as a frontend reports it.
#[derive(Debug, Deserialize)]
struct Reported {
    formula: Option<String>,
    #[serde(alias = "result")]
    total: Option<Number>,
    dice: Option<Vec<ReportedDie>>,
    /// Some frontends put the dice here.
    details: Option<Details>,
    #[serde(default = "yes")]
    success: bool,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Details {
    dice: Option<Vec<ReportedDie>>,
}

fn yes() -> bool {
    true
}

/// One die, or the dice of one term.
#[derive(Debug, Deserialize)]
struct ReportedDie {
    /// A number; `f` for Fate dice, `c` for coins.
    #[serde(default)]
    faces: Value,
    kind: Option<String>,
    #[serde(alias = "result")]
    value: Option<i64>,
    results: Option<Vec<ReportedResult>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ReportedResult {
    Value(i64),
    Die {
        #[serde(alias = "value")]
        result: i64,
    },
}

/// A reported die.
#[derive(Clone, Copy, Debug)]
struct Fallen {
    /// `None`: whatever the formula says.
    faces: Option<u32>,
    value: i64,
    kind: Kind,
}

impl Fallen {
    /// The die from a frontend that does not mark Fate dice and coins: decides by the number of faces.
    fn named(&self) -> Self {
        let kind = match self.faces {
            Some(3) => Kind::Fate,
            Some(2) => Kind::Coin,
            _ => self.kind,
        };
        Self { kind, ..*self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Standard,
    Fate,
    Coin,
}

/// Reads the results of the requested rolls, in order.
///
/// # Errors
/// A sentence that says what is impossible.
pub fn read(data: &Value, asked: &[&RollInput]) -> Result<Vec<Rolled>, String> {
    let results = data.get("results").cloned().unwrap_or_default();
    let results: Vec<Reported> =
        serde_json::from_value(results).map_err(|e| format!("its results cannot be read: {e}"))?;
    if results.len() != asked.len() {
        return Err(format!("{} rolls were requested, but {} came", asked.len(), results.len()));
    }
    let one = |(i, (reported, asked)): (usize, (Reported, &&RollInput))| {
        roll(reported, asked).map_err(|why| format!("roll {} is impossible: {why}", i + 1))
    };
    results.into_iter().zip(asked).enumerate().map(one).collect()
}

fn roll(reported: Reported, asked: &RollInput) -> Result<Rolled, String> {
    let rolled = Rolled {
        formula: asked.formula.clone(),
        flavor: asked.flavor.clone(),
        timestamp: Some(clock::now()),
        ..Rolled::default()
    };
    if !reported.success {
        let words = match &reported.error {
            Some(Value::String(words)) => words.as_str(),
            Some(error) => error.get("message").and_then(Value::as_str).unwrap_or_default(),
            None => "",
        };
        let words: String = words.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
        let message = format!("The frontend could not roll it. {words}").trim_end().to_owned();
        let error = RollError { code: "frontend_failed", message, position: 0, expected: None, hint: None };
        return Ok(Rolled { error: Some(error), ..rolled });
    }
    let formula = Formula::parse(&asked.formula).map_err(|e| e.message.into_owned())?;
    if let Some(given) = &reported.formula {
        let same = given.trim() == asked.formula.trim()
            || Formula::parse(given).is_ok_and(|given| given.to_string() == formula.to_string());
        if !same {
            return Err("it is for another formula".to_owned());
        }
    }
    let total = reported.total.as_ref().and_then(Number::as_f64).ok_or("it has no total")?;
    let dice = reported.dice.or(reported.details.and_then(|d| d.dice)).unwrap_or_default();
    let terms = dice.into_iter().map(term).collect::<Result<Vec<_>, _>>()?;
    let roll = replayed(&formula, &terms, total)?;
    Ok(Rolled { success: true, total: whole(roll.total), dice: roll.dice, flavors: roll.flavours, ..rolled })
}

fn term(die: ReportedDie) -> Result<Vec<Fallen>, String> {
    let (faces, kind) = match (&die.faces, die.kind.as_deref()) {
        (Value::String(f), _) if f.eq_ignore_ascii_case("f") => (Some(3), Kind::Fate),
        (Value::String(c), _) if c.eq_ignore_ascii_case("c") => (Some(2), Kind::Coin),
        (faces, kind) => {
            let kind = match kind {
                Some("fate") => Kind::Fate,
                Some("coin") => Kind::Coin,
                _ => Kind::Standard,
            };
            (faces.as_u64().map(|faces| u32::try_from(faces).unwrap_or(u32::MAX)), kind)
        }
    };
    let values = match (die.value, die.results) {
        (Some(value), None) => vec![value],
        (None, Some(results)) => results
            .into_iter()
            .map(|shown| match shown {
                ReportedResult::Value(value) | ReportedResult::Die { result: value } => value,
            })
            .collect(),
        _ => return Err("a die must have a `value`, or a term its `results`".to_owned()),
    };
    Ok(values.into_iter().map(|value| Fallen { faces, value, kind }).collect())
}

/// Evaluates the formula with these dice: in the order given or, if they come in terms, in any order of the terms.
fn replayed(formula: &Formula, terms: &[Vec<Fallen>], total: f64) -> Result<Roll, String> {
    if terms.iter().map(Vec::len).sum::<usize>() > DICE_MAX {
        return Err(format!("it has more than {DICE_MAX} dice"));
    }
    let plain = terms.concat();
    let mut first = replay(formula, &plain, total);
    if first.is_err() && plain.iter().any(|die| die.value < 1 && die.kind == Kind::Standard) {
        first = replay(formula, &plain.iter().map(Fallen::named).collect::<Vec<_>>(), total);
    }
    let by_terms = terms.iter().any(|term| term.len() > 1) && terms.len() <= SHUFFLED_TERMS_MAX;
    if first.is_ok() || !by_terms {
        return first;
    }
    let mut order: Vec<usize> = (0..terms.len()).collect();
    while next_order(&mut order) {
        let dice: Vec<Fallen> = order.iter().filter_map(|i| terms.get(*i)).flatten().copied().collect();
        if let Ok(roll) = replay(formula, &dice, total) {
            return Ok(roll);
        }
    }
    first
}

/// Makes the next permutation of `order`; false after the last.
fn next_order(order: &mut [usize]) -> bool {
    let Some(rise) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let Some(swap) = order.iter().rposition(|n| *n > order[rise]) else { return false };
    order.swap(rise, swap);
    order[rise + 1..].reverse();
    true
}

fn replay(formula: &Formula, dice: &[Fallen], total: f64) -> Result<Roll, String> {
    let mut given = Replay { dice, next: 0 };
    let roll = formula.roll(&mut given, &no_variables).map_err(|e| e.message.into_owned())?;
    if given.next < dice.len() {
        return Err(format!("it has {} dice, but the formula rolls {}", dice.len(), given.next));
    }
    let shown = roll.dice.iter().zip(dice).all(|(ours, theirs)| i64::from(ours.value) == theirs.value);
    if !shown {
        return Err("a die shows an impossible value".to_owned());
    }
    if (roll.total - total).abs() > 1e-6 {
        return Err(format!("its dice give {}, not {total}", roll.total));
    }
    Ok(roll)
}

/// Reported dice as a source of dice.
struct Replay<'a> {
    dice: &'a [Fallen],
    next: usize,
}

impl Dice for Replay<'_> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let index = self.next;
        let die = self.dice.get(index).ok_or(OutOfDice::TooFew { index, faces })?;
        // A Fate die shows -1 to 1 and a coin 0 or 1. The formula expects numbers from 1.
        let fell = match die.kind {
            Kind::Standard => die.value,
            Kind::Fate => die.value.saturating_add(2),
            Kind::Coin => die.value.saturating_add(1),
        };
        let value = u32::try_from(fell).unwrap_or(0);
        if die.faces.is_some_and(|own| own != faces) || !(1..=faces).contains(&value) {
            return Err(OutOfDice::OutOfRange { index, value, faces });
        }
        self.next += 1;
        Ok(value)
    }
}
