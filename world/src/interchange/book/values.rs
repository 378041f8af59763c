//! Values in another form: other programs write 1 for true, `"70"` for 70, and 1984 for a text. Each means what it says; what says
//! nothing is left out and reported.

use serde_json::Value;

use super::entry::Members;
use crate::interchange::text::{flag, number};

/// Fields of SillyTavern's format that are true or false.
const FLAGS: &[&str] = &[
    "constant",
    "vectorized",
    "selective",
    "disable",
    "ignoreBudget",
    "excludeRecursion",
    "preventRecursion",
    "useProbability",
    "groupOverride",
    "caseSensitive",
    "matchWholeWords",
    "useGroupScoring",
    "matchPersonaDescription",
    "matchCharacterDescription",
    "matchCharacterPersonality",
    "matchCharacterDepthPrompt",
    "matchScenario",
    "matchCreatorNotes",
];

/// Fields that are numbers.
const NUMBERS: &[&str] = &["order", "priority", "probability", "depth", "scanDepth", "selectiveLogic", "groupWeight"];

/// Fields that are numbers, but may be something else.
const MOSTLY_NUMBERS: &[&str] = &["position", "role", "sticky", "cooldown", "delay", "delayUntilRecursion"];

/// A value that could not be used: the field, and why.
pub type Unused = (&'static str, &'static str);

pub const NO_FLAG: &str = "this is neither true nor false, so the usual value is used";
const NO_NUMBER: &str = "this is not a number, so the usual value is used";

/// Gives the fields of an entry their types, and leaves out what cannot be used.
pub fn settle(info: &mut Members) -> Vec<Unused> {
    let mut unused = Vec::new();
    for name in FLAGS {
        settle_one(info, name, |value| flag(value).map(Value::Bool), NO_FLAG, &mut unused);
    }
    for name in NUMBERS {
        settle_one(info, name, |value| number(value).map(Value::Number), NO_NUMBER, &mut unused);
    }
    for name in MOSTLY_NUMBERS {
        let Some(text @ Value::String(_)) = info.get(*name) else { continue };
        let meant = number(text).map(Value::Number).or_else(|| flag(text).map(Value::Bool));
        if let Some(meant) = meant {
            info.insert((*name).to_owned(), meant);
        }
    }
    unused
}

fn settle_one(
    info: &mut Members,
    name: &'static str,
    meaning: impl Fn(&Value) -> Option<Value>,
    why: &'static str,
    unused: &mut Vec<Unused>,
) {
    let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    let Some(value) = info.get(name).filter(|value| !value.is_null()) else { return };
    match meaning(value) {
        Some(meant) => {
            info.insert(name.to_owned(), meant);
        }
        None => {
            if !is_empty(value) {
                unused.push((name, why));
            }
            info.remove(name);
        }
    }
}

/// A flag of a source as it is read: true, false, or what it says if that is neither.
pub fn told(source: &Members, name: &str) -> Option<Value> {
    let value = source.get(name).filter(|value| !value.is_null())?;
    Some(flag(value).map_or_else(|| value.clone(), Value::Bool))
}

/// The opposite of [`told`].
pub fn told_off(source: &Members, name: &str) -> Option<Value> {
    told(source, name).map(|value| match value {
        Value::Bool(is_on) => Value::Bool(!is_on),
        other => other,
    })
}
