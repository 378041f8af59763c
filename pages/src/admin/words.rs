//! Values for people to read, and lists as people write them.

use serde_json::Value;

use base::{
    error::{Error, FieldError},
    json,
};
use edge::users::Role;

/// A role of a user as people read it. The role `owner` is not called so, because the owners of places are something else.
#[must_use]
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Owner => "administrator",
        Role::Editor => "editor",
        Role::Viewer => "viewer",
    }
}

/// A JSON value for people to read: a list as words with commas, booleans as yes and no, null as nothing.
#[must_use]
pub fn display_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().map(display_text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// The same, but values with many parts get several lines.
#[must_use]
pub fn display_multiline(value: &Value) -> String {
    match display_text(value) {
        text if text.starts_with(['{', '[']) && !value.is_string() => {
            serde_json::to_string_pretty(value).unwrap_or(text)
        }
        text => text,
    }
}

/// The value at a pointer, for people to read.
#[must_use]
pub fn at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).map(display_text).unwrap_or_default()
}

/// A list of words as a field shows it: one per line, because a word may contain a comma.
#[must_use]
pub fn lines(items: &[Value]) -> String {
    items.iter().map(display_text).collect::<Vec<_>>().join("\n")
}

/// The words of such a field.
pub fn of_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|word| !word.is_empty())
}

/// JSON for people to edit; empty if there is nothing in it.
#[must_use]
pub fn json(value: &Value) -> String {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if is_empty { String::new() } else { serde_json::to_string_pretty(value).unwrap_or_default() }
}

/// The value of JSON that people wrote.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub fn json_of(text: &str) -> Result<Value, String> {
    let mut value = json::parse(text).map_err(|e| format!("This is not JSON: {e}."))?;
    let first = |error: Error| match error.errors.first() {
        Some(FieldError { pointer, message, .. }) => format!("{message} It is at `{pointer}`."),
        None => error.detail.clone(),
    };
    json::sound(&mut value, &mut String::new()).map_err(first)?;
    Ok(value)
}
