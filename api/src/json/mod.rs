//! JSON from outside. Every body, frame, file and list of tool calls comes in here, and what is let in comes back as it was.
//!
//! [`parse`] reads a text: no key twice in one object, a bounded depth and number of values. [`sound`] refuses what PostgreSQL
//! cannot keep or what cannot be read again: NUL characters, and numbers beyond [`NUMBER_MAX`]. [`Named`] reads a value as a type
//! whose members have names: an array is never a struct's members by position.
//! Nothing else may read the JSON of others with `serde_json` alone. A new rule for all of it is a line in `sound`.

mod named;
mod strict;

pub use named::Named;
pub use strict::parse;

use serde_json::{Number, Value};

use crate::error::{Code, Error, Result};

/// Objects and lists within each other. The journal and records wrap what was sent, and readers stop at 128.
pub const DEPTH_MAX: usize = 64;

/// Values of one text, all together.
pub const VALUES_MAX: usize = 1_000_000;

/// Numbers that are not whole, or beyond 64 bits, keep below this: `jsonb` writes every digit of a number out, and a whole number
/// of more than 64 bits would not come back exactly.
pub const NUMBER_MAX: f64 = 18_446_744_073_709_551_616.0;

/// Numbers other than 0 are at least this far from it, for the same reason.
pub const NUMBER_MIN: f64 = 1e-30;

/// JSON that was read as `error` tells, for who sent it. `what` begins the sentence: "The body", "The file".
#[must_use]
pub fn refused(what: &str, error: &serde_json::Error) -> Error {
    Error::new(Code::BadRequest, format!("{what} is not JSON that can be read: {error}."))
}

/// A text of JSON, read strictly and found [`sound`].
///
/// # Errors
/// `bad_request` saying where it stops being JSON, or which key stands twice; `validation_failed` with a pointer.
pub fn read(what: &str, text: &str) -> Result<Value> {
    let value = parse(text).map_err(|error| refused(what, &error))?;
    sound(&value, &mut String::new())?;
    Ok(value)
}

/// The same, but texts may hold NUL characters: for who keeps none of them and judges each by itself.
///
/// # Errors
/// As for [`read`].
pub fn read_unkept(what: &str, text: &str) -> Result<Value> {
    let value = parse(text).map_err(|error| refused(what, &error))?;
    sound_at(&value, &mut String::new(), DEPTH_MAX, true)?;
    Ok(value)
}

/// The text of a file; a byte order mark before it is passed over.
///
/// # Errors
/// `bad_request` if it is not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let detail = format!("The file is not UTF-8: see the byte at position {}.", e.valid_up_to());
        Error::new(Code::BadRequest, detail)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A file of JSON, read strictly and found [`sound`].
///
/// # Errors
/// As for [`read`], and if it is not UTF-8.
pub fn file(bytes: &[u8]) -> Result<Value> {
    read("The file", text(bytes)?)
}

/// Whether everything in a value can be kept and comes back.
///
/// # Errors
/// `validation_failed` at the first text with a NUL character, number out of bounds, or value that lies too deep.
pub fn sound(value: &Value, pointer: &mut String) -> Result<()> {
    sound_at(value, pointer, DEPTH_MAX, false)
}

fn sound_at(value: &Value, pointer: &mut String, deeper: usize, nul_passes: bool) -> Result<()> {
    match value {
        Value::String(text) if !nul_passes && text.contains('\0') => Err(nul(pointer)),
        Value::Number(number) if !comes_back(number) => Err(Error::invalid(
            pointer.as_str(),
            "invalid_number",
            "A number lies between -2^63 and 2^64 and is 0 or at least 1e-30 away from it.",
        )),
        Value::Array(_) | Value::Object(_) if deeper == 0 => Err(Error::invalid(
            pointer.as_str(),
            "too_deep",
            format!("Objects and lists may lie {DEPTH_MAX} deep within each other."),
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
    Error::invalid(pointer, "invalid_text", "Text may not hold NUL characters.")
}

fn comes_back(number: &Number) -> bool {
    if number.is_i64() || number.is_u64() {
        return true;
    }
    let value = number.as_f64().unwrap_or(f64::INFINITY);
    // Whole numbers of 64 bits were let in above: what is left at these ends was rounded.
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

/// A key as a segment of a JSON pointer (RFC 6901).
#[must_use]
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
