//! Variables as a client gives them, such as Foundry's roll data: `@abilities.dex.mod` written nested or with dots.
//!
//! Only what a formula asks for is looked at: roll data are full of lists, pictures and texts that no formula names.

use rules::dice::Meaning;
use serde_json::{Map, Value};

/// Dots of a name: each may lead into an object or be part of a member's name, and all ways are gone.
const DOTS_MAX: usize = 10;

/// The member `variables` of a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a>(Option<&'a Map<String, Value>>);

impl<'a> Values<'a> {
    #[must_use]
    pub fn of(given: Option<&'a Map<String, Value>>) -> Self {
        Self(given)
    }

    /// What a name stands for; nothing if there is no such name. One that is given twice, nested and with dots, means nothing.
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

/// Every value of this name: each of its dots may lead into an object, or be part of a member's name.
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
