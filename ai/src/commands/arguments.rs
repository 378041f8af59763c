//! Converts arguments from models and command lines to the types that the schema asks for, without guessing.

use serde_json::{Map, Number, Value};

/// Converts numeric strings to numbers, and numbers like 15.0 to integers, wherever the schema asks for a number.
pub fn coerce(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, member) in members.iter_mut() {
                if let Some(schema) = properties.get(name) {
                    coerce(schema, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(schema, item));
            }
        }
        Value::String(text) if asks_for(schema, "integer") || asks_for(schema, "number") => {
            if let Some(number) = number(text.trim()) {
                *value = Value::Number(number);
            }
        }
        Value::Number(number) if asks_for(schema, "integer") => {
            if let Some(whole) = number.as_f64().and_then(whole).filter(|_| number.as_i64().is_none()) {
                *value = Value::Number(whole);
            }
        }
        _ => {}
    }
}

/// Whether the schema allows a type, directly or as one of several.
fn asks_for(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => schema
            .get("anyOf")
            .and_then(Value::as_array)
            .is_some_and(|any| any.iter().any(|schema| asks_for(schema, wanted))),
    }
}

fn number(text: &str) -> Option<Number> {
    // Rust also reads `inf` and `1e3` as numbers. Here a number has only digits and a point.
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse().ok().and_then(|number| whole(number).or_else(|| Number::from_f64(number))),
    }
}

fn whole(number: f64) -> Option<Number> {
    (number.fract() == 0.0 && number.abs() < 1e15).then(|| Number::from(number as i64))
}

/// Reads arguments from a command line: either one JSON object, or several `name=value`. Each value is JSON or plain text.
///
/// # Errors
/// A sentence about what is wrong.
pub fn of_words(schema: &Value, words: &[String]) -> Result<Value, String> {
    if let [one] = words
        && one.trim_start().starts_with('{')
    {
        return serde_json::from_str(one).map_err(|e| format!("the arguments are not JSON: {e}"));
    }
    let mut members = Map::new();
    for word in words {
        let (name, text) = word.split_once('=').ok_or_else(|| format!("`{word}` is not `name=value`"))?;
        let value = serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| value.is_object() || value.is_array() || value.is_boolean());
        members.insert(name.to_owned(), value.unwrap_or_else(|| Value::String(text.to_owned())));
    }
    let mut arguments = Value::Object(members);
    coerce(schema, &mut arguments);
    Ok(arguments)
}
