//! Variables from a client, such as Foundry's roll data. `@abilities.dex.mod` may be written nested or with dots.
//!
//! Only names that a formula uses are looked up, because roll data are full of lists, images and texts.

use rules::dice::Meaning;
use serde_json::{Map, Value};

/// The most dots in a name. Each may lead into an object or be part of a member's name, and all combinations are tried.
const DOTS_MAX: usize = 10;

/// The member `variables` of a request's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a>(Option<&'a Map<String, Value>>);

impl<'a> Values<'a> {
    #[must_use]
    pub fn of(given: Option<&'a Map<String, Value>>) -> Self {
        Self(given)
    }

    /// What a name stands for; `None` if there is no such name, or if it is given twice, nested and with dots.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Meaning<'a>> {
        if name.matches('.').count() > DOTS_MAX {
            return None;
        }
        let mut found = Vec::new();
        find(self.0?, name, &mut found);
        match found[..] {
            [] => None,
            [value] => Some(meaning(value)),
            _ => Some(Meaning::Nothing),
        }
    }
}

/// Finds every value with this name. Each dot may lead into an object or be part of a member's name.
fn find<'a>(members: &'a Map<String, Value>, name: &str, found: &mut Vec<&'a Value>) {
    found.extend(members.get(name));
    for (at, _) in name.match_indices('.') {
        if let Some(Value::Object(inner)) = members.get(&name[..at]) {
            find(inner, &name[at + 1..], found);
        }
    }
}

fn meaning(value: &Value) -> Meaning<'_> {
    match value {
        Value::Number(number) => number.as_f64().map_or(Meaning::Nothing, Meaning::Number),
        Value::String(text) => Meaning::Text(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Meaning::Nothing,
    }
}
