//! Arguments as whoever wrote them meant them, without guessing.

use serde_json::{Number, Value};

/// Reads numbers and truth values that were written as text, and whole numbers that were written with a decimal point, wherever the
/// schema asks for nothing else. Everything that is unclear, such as 15.5 for a whole number, stays as it is.
pub fn as_meant(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, member) in members.iter_mut() {
                if let Some(schema) = properties.get(name) {
                    as_meant(schema, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| as_meant(schema, item));
            }
        }
        Value::String(text) if !asks_for(schema, "string") => {
            let text = text.trim();
            let number = (asks_for(schema, "integer") || asks_for(schema, "number")).then(|| number(text)).flatten();
            let truth = match text {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            };
            let truth = truth.filter(|_| asks_for(schema, "boolean"));
            if let Some(meant) = number.map(Value::Number).or(truth.map(Value::Bool)) {
                *value = meant;
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
