//! Reading JSON from outside. Every body, frame, file and list of tool calls is read here, and whatever is accepted can
//! be stored and read back unchanged.
//!
//! - [`parse`] reads a text. It rejects an object that has a key twice, and limits the depth and the number of values.
//! - [`sound`] rejects what PostgreSQL cannot store or what cannot be read back: NUL characters, and numbers beyond
//!   [`NUMBER_MAX`].
//! - [`Named`] reads a value as a type whose members have names: it never reads an array as a struct.
//!
//! Nothing else may read JSON from outside with `serde_json` alone. To add a rule for all of it, add a line in `sound`.

mod named;
mod strict;

pub use named::Named;
pub use strict::{DEPTH_MAX, VALUES_MAX, parse};

use serde_json::{Number, Value};

use crate::error::{Code, Error, Result};

/// Numbers that are not whole, or need more than 64 bits, must be below this: `jsonb` writes out every digit of a
/// number, and a whole number of more than 64 bits would not be read back exactly.
pub const NUMBER_MAX: f64 = 18_446_744_073_709_551_616.0;

/// Numbers other than 0 must be at least this far from 0, for the same reason.
pub const NUMBER_MIN: f64 = 1e-30;

/// The error for a text that is not valid JSON. `what` begins the sentence: "The body", "The file".
#[must_use]
pub fn refused(what: &str, error: &serde_json::Error) -> Error {
    Error::new(Code::BadRequest, format!("{what} is not valid JSON: {error}."))
}

/// Reads a text of JSON strictly and checks that it is [`sound`].
///
/// # Errors
/// `bad_request` that says where the JSON is invalid or which key occurs twice; `validation_failed` with a pointer.
pub fn read(what: &str, text: &str) -> Result<Value> {
    let value = parse(text).map_err(|error| refused(what, &error))?;
    sound(&value, &mut String::new())?;
    Ok(value)
}

/// Like [`read`], but texts may contain NUL characters: for callers that check each text themselves before they store
/// it.
///
/// # Errors
/// As for [`read`].
pub fn read_unkept(what: &str, text: &str) -> Result<Value> {
    let value = parse(text).map_err(|error| refused(what, &error))?;
    sound_at(&value, &mut String::new(), DEPTH_MAX, true)?;
    Ok(value)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// `bad_request` if it is not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let detail = format!("The file is not UTF-8. The first invalid byte is at position {}.", e.valid_up_to());
        Error::new(Code::BadRequest, detail)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Reads a file of JSON strictly and checks that it is [`sound`].
///
/// # Errors
/// As for [`read`], and also if the file is not UTF-8.
pub fn file(bytes: &[u8]) -> Result<Value> {
    read("The file", text(bytes)?)
}

/// Checks that everything in a value can be stored and read back unchanged.
///
/// # Errors
/// `validation_failed` at the first text with a NUL character, number out of range, or value that is nested too deep.
pub fn sound(value: &Value, pointer: &mut String) -> Result<()> {
    sound_at(value, pointer, DEPTH_MAX, false)
}

fn sound_at(value: &Value, pointer: &mut String, deeper: usize, nul_passes: bool) -> Result<()> {
    match value {
        Value::String(text) if !nul_passes && text.contains('\0') => Err(nul(pointer)),
        Value::Number(number) if !comes_back(number) => Err(Error::invalid(
            pointer.as_str(),
            "invalid_number",
            "A number must be between -2^63 and 2^64, and either 0 or at least 1e-30 away from 0.",
        )),
        Value::Array(_) | Value::Object(_) if deeper == 0 => Err(Error::invalid(
            pointer.as_str(),
            "too_deep",
            format!("Objects and lists may be nested at most {DEPTH_MAX} levels deep."),
        )),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| {
            below(pointer, &i.to_string(), |pointer| sound_at(item, pointer, deeper - 1, nul_passes))
        }),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            if !nul_passes && key.contains('\0') {
                return Err(nul(pointer));
            }
            below(pointer, key, |pointer| sound_at(member, pointer, deeper - 1, nul_passes))
        }),
        _ => Ok(()),
    }
}

fn nul(pointer: &str) -> Error {
    Error::invalid(pointer, "invalid_text", "Text must not contain NUL characters.")
}

fn comes_back(number: &Number) -> bool {
    if number.is_i64() || number.is_u64() {
        return true;
    }
    let value = number.as_f64().unwrap_or(f64::INFINITY);
    // Whole numbers of 64 bits were accepted above. Any other number at these ends was rounded.
    value == 0.0 || value > -NUMBER_MAX / 2.0 && value < NUMBER_MAX && value.abs() >= NUMBER_MIN
}

fn below(pointer: &mut String, segment: &str, work: impl FnOnce(&mut String) -> Result<()>) -> Result<()> {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&escape(segment));
    let result = work(pointer);
    pointer.truncate(length);
    result
}

/// Escapes a key as a segment of a JSON pointer (RFC 6901).
#[must_use]
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
