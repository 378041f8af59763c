//! Makes a minimal value that satisfies a JSON Schema, as arguments for a forced call.
//!
//! It supports what tool schemas use: types, enums, bounds, required properties, references and alternatives. It
//! ignores everything else (patterns, conditions), and must never recurse without a limit.

use serde_json::{Map, Number, Value, json};

/// The deepest nesting to fill.
const DEPTH_MAX: usize = 12;
/// The maximum length of a text for a string without `maxLength`, in characters.
const TEXT_CHARS_MAX: usize = 200;
/// The most items to put into a list.
const ITEMS_MAX: u64 = 100;

/// What to make values from.
pub(crate) struct Hints<'a> {
    /// For strings.
    pub(crate) text: &'a str,
    /// For a property called `player_id`.
    pub(crate) player_id: Option<&'a str>,
}

/// Fills `schema`; `root` resolves its references.
pub(crate) fn fill(schema: &Value, root: &Value, hints: &Hints<'_>, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return choose(options, hints.text);
    }
    if let Some(target) = reference(schema, root) {
        return fill(target, root, hints, depth + 1);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(word).and_then(Value::as_array) {
            let useful = options.iter().find(|option| kind(option) != Some("null"));
            return useful.map_or(Value::Null, |option| fill(option, root, hints, depth + 1));
        }
    }
    let mut value = fill_type(schema, root, hints, depth);
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        match (&mut value, fill(part, root, hints, depth + 1)) {
            (Value::Object(members), Value::Object(more)) => members.extend(more),
            (whole, other) => *whole = other,
        }
    }
    value
}

fn fill_type(schema: &Value, root: &Value, hints: &Hints<'_>, depth: usize) -> Value {
    match kind(schema) {
        Some("string") => Value::String(string(schema, hints)),
        Some("integer") => Value::from(integer(schema)),
        Some("number") => number(schema),
        Some("boolean") => Value::Bool(false),
        Some("null") => Value::Null,
        Some("array") => {
            let count = limit(schema, "minItems").unwrap_or(0).min(ITEMS_MAX);
            let items = schema.get("items").unwrap_or(&Value::Null);
            (0..count).map(|_| fill(items, root, hints, depth + 1)).collect()
        }
        _ => object(schema, root, hints, depth),
    }
}

/// The option that occurs in the text as a word, or else the first.
fn choose(options: &[Value], text: &str) -> Value {
    let text = text.to_lowercase();
    let named = |option: &&Value| {
        let word = option.as_str().unwrap_or_default().to_lowercase().replace('_', " ");
        contains_word(&text, &word)
    };
    let option = options.iter().find(named).or(options.first());
    option.cloned().unwrap_or(Value::Null)
}

/// Whether `text` contains `word` without a letter, digit or underscore next to it.
pub(crate) fn contains_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|head| head.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|tail| tail.chars().next());
            !before.is_some_and(part) && !after.is_some_and(part)
        })
}

/// The schema's type; the first one that is not null if there are several.
fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => None,
    }
}

fn reference<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

fn object(schema: &Value, root: &Value, hints: &Hints<'_>, depth: usize) -> Value {
    let mut members = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = schema.get("properties").and_then(|all| all.get(name));
        let value = match (name, hints.player_id) {
            ("player_id", Some(player)) => json!(player),
            _ => fill(property.unwrap_or(&Value::Null), root, hints, depth + 1),
        };
        members.insert(name.to_owned(), value);
    }
    Value::Object(members)
}

fn limit(schema: &Value, word: &str) -> Option<u64> {
    schema.get(word).and_then(Value::as_u64)
}

fn string(schema: &Value, hints: &Hints<'_>) -> String {
    if schema.get("format").and_then(Value::as_str) == Some("uuid") {
        let known = hints.player_id.filter(|id| id.len() == 36);
        return known.unwrap_or("00000000-0000-4000-8000-000000000000").to_owned();
    }
    let size = |word| limit(schema, word).and_then(|chars| usize::try_from(chars).ok());
    let most = size("maxLength").unwrap_or(TEXT_CHARS_MAX);
    let mut text: String = hints.text.chars().take(most).collect();
    let missing = size("minLength").unwrap_or(0).min(most).saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('.', missing));
    text
}

/// The minimum, or 10 within the bounds.
fn integer(schema: &Value) -> i64 {
    let bound = |word| schema.get(word).and_then(Value::as_i64);
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|value| value.saturating_add(1)));
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|value| value.saturating_sub(1)));
    least.unwrap_or(10.min(most.unwrap_or(10)))
}

fn number(schema: &Value) -> Value {
    let bound = |word| schema.get(word).and_then(Value::as_number);
    let plain = bound("minimum").cloned().or_else(|| {
        let most = bound("maximum").and_then(Number::as_f64);
        most.filter(|most| *most < 10.0).and_then(Number::from_f64)
    });
    plain.map_or_else(|| json!(integer(schema)), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(schema: &Value) -> Value {
        let hints = Hints { text: "I use sleight of hand", player_id: Some("player_alice") };
        fill(schema, schema, &hints, 0)
    }

    #[test]
    fn only_what_is_required() {
        let schema = json!({
            "type": "object", "required": ["player_id", "skill", "dc", "note", "list"],
            "properties": {
                "player_id": {"type": "string"}, "left_out": {"type": "string"},
                "skill": {"$ref": "#/$defs/Skill"}, "dc": {"type": "integer", "maximum": 5},
                "note": {"type": ["null", "string"], "maxLength": 5},
                "list": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}},
            },
            "$defs": {"Skill": {"enum": ["stealth", "sleight_of_hand"]}},
        });
        assert_eq!(
            filled(&schema),
            json!({"player_id": "player_alice", "skill": "sleight_of_hand", "dc": 5, "note": "I use", "list": [false]})
        );
    }

    #[test]
    fn recursion_ends() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}});
        assert!(filled(&schema).is_object());
    }
}
