//! Reading JSON from outside. Every body, frame, file and list of tool calls is read here, and whatever is accepted can
//! be stored and read back unchanged, except that lines in texts end with LF.
//!
//! - [`parse`] reads a text. It rejects an object that has a key twice, and limits the depth and the number of values.
//! - [`sound`] rejects what PostgreSQL cannot store or what cannot be read back (numbers beyond [`NUMBER_MAX`]), and texts that break
//!   the rule of [`crate::text`]. [`clean`] makes texts keep that rule, for senders that cannot correct them.
//! - [`Named`] reads a value as a type whose members have names: it never reads an array as a struct.
//!
//! Nothing else may read JSON from outside with `serde_json` alone. To add a rule for all of it, add a line in `sound`.

mod named;
mod strict;

pub use named::Named;
pub use strict::{DEPTH_MAX, VALUES_MAX, parse};

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::{
    error::{Code, Error, Result},
    text::{self, Unfit},
};

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

/// Reads a text of JSON strictly and checks that it is [`sound`]. Lines in its texts end with LF.
///
/// # Errors
/// `bad_request` that says where the JSON is invalid or which key occurs twice; `validation_failed` with a pointer.
pub fn read(what: &str, text: &str) -> Result<Value> {
    let mut value = parse(text).map_err(|error| refused(what, &error))?;
    sound(&mut value, &mut String::new())?;
    Ok(value)
}

/// Like [`read`], but texts stay as they are and may have control characters: for callers that check each text themselves before they
/// store it.
///
/// # Errors
/// As for [`read`].
pub fn read_unkept(what: &str, text: &str) -> Result<Value> {
    let mut value = parse(text).map_err(|error| refused(what, &error))?;
    walk(&mut value, &mut String::new(), DEPTH_MAX, &mut KeepTexts)?;
    Ok(value)
}

/// The text of a file, without a byte order mark.
///
/// # Errors
/// `bad_request` if it is not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    utf8(bytes).map(|text| text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let detail = format!("The file is not UTF-8. The first invalid byte is at position {}.", e.valid_up_to());
        Error::new(Code::BadRequest, detail)
    })
}

/// Reads a file of JSON strictly. Its texts may have control characters: the caller reports them and calls [`clean`].
///
/// # Errors
/// As for [`read`], and also if the file is not UTF-8.
pub fn file(bytes: &[u8]) -> Result<Value> {
    read_unkept("The file", utf8(bytes)?)
}

/// Checks that everything in a value can be stored and read back. Makes lines end with LF.
///
/// # Errors
/// `validation_failed` at the first text with a control character, number out of range, or value that is nested too deep.
pub fn sound(value: &mut Value, pointer: &mut String) -> Result<()> {
    walk(value, pointer, DEPTH_MAX, &mut RejectUnfitTexts)
}

/// Makes the texts and names of members keep the rule of [`crate::text`], for senders that cannot correct them.
pub fn clean(value: &mut Value) {
    clean_and_tell(value, |_| {});
}

/// A text that lost more than the form of its line ends.
#[derive(Clone, Copy, Debug)]
pub struct Cleaned<'a> {
    /// Where it is. It may be as long as the names of members are.
    pub pointer: &'a str,
    /// The text before.
    pub original: &'a str,
    /// Whether it is the name of a member of the object at `pointer`. If another member has that name already, the member is lost.
    pub is_name: bool,
}

/// [`clean`], and tells of each text that lost something.
pub fn clean_and_tell(value: &mut Value, tell: impl FnMut(Cleaned<'_>)) {
    // Only depth and numbers can be rejected, and those were checked when the value was read.
    let _ = walk(value, &mut String::new(), usize::MAX, &mut CleanTexts(tell));
}

/// What happens to the texts of a value.
trait TextRule {
    /// Whether numbers have to come back as they were, and names have to differ.
    const REJECTS: bool = true;

    /// The text that takes the place of `text`, if it changes.
    fn text(&mut self, text: &str, pointer: &str) -> Result<Option<String>>;

    /// The name that takes the place of a member's name, if it changes.
    fn name(&mut self, name: &str, pointer: &str) -> Result<Option<String>>;
}

struct KeepTexts;

impl TextRule for KeepTexts {
    fn text(&mut self, _: &str, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn name(&mut self, _: &str, _: &str) -> Result<Option<String>> {
        Ok(None)
    }
}

struct RejectUnfitTexts;

impl TextRule for RejectUnfitTexts {
    fn text(&mut self, text: &str, pointer: &str) -> Result<Option<String>> {
        match text::checked(text) {
            Ok(Cow::Borrowed(_)) => Ok(None),
            Ok(Cow::Owned(text)) => Ok(Some(text)),
            Err(unfit) => Err(unfit_text(pointer, unfit)),
        }
    }

    fn name(&mut self, name: &str, pointer: &str) -> Result<Option<String>> {
        match text::checked(name) {
            Ok(Cow::Borrowed(_)) => Ok(None),
            Ok(Cow::Owned(name)) => Ok(Some(name)),
            Err(unfit) => Err(Error::invalid(pointer, "invalid_text", format!("The name of a member {unfit}."))),
        }
    }
}

struct CleanTexts<F>(F);

impl<F: FnMut(Cleaned<'_>)> CleanTexts<F> {
    fn clean(&mut self, original: &str, pointer: &str, is_name: bool) -> Option<String> {
        let Cow::Owned(cleaned) = text::cleaned(original) else { return None };
        if text::checked(original).is_err() {
            (self.0)(Cleaned { pointer, original, is_name });
        }
        Some(cleaned)
    }
}

impl<F: FnMut(Cleaned<'_>)> TextRule for CleanTexts<F> {
    const REJECTS: bool = false;

    fn text(&mut self, text: &str, pointer: &str) -> Result<Option<String>> {
        Ok(self.clean(text, pointer, false))
    }

    fn name(&mut self, name: &str, pointer: &str) -> Result<Option<String>> {
        Ok(self.clean(name, pointer, true))
    }
}

fn walk<T: TextRule>(value: &mut Value, pointer: &mut String, deeper: usize, texts: &mut T) -> Result<()> {
    match value {
        Value::String(text) => {
            if let Some(kept) = texts.text(text, pointer)? {
                *text = kept;
            }
            Ok(())
        }
        Value::Number(number) if T::REJECTS && !comes_back(number) => Err(Error::invalid(
            pointer.as_str(),
            "invalid_number",
            "A number must be between -2^63 and 2^64, and either 0 or at least 1e-30 away from 0.",
        )),
        Value::Array(_) | Value::Object(_) if deeper == 0 => Err(Error::invalid(
            pointer.as_str(),
            "too_deep",
            format!("Objects and lists may be nested at most {DEPTH_MAX} levels deep."),
        )),
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(i, item)| below(pointer, &i.to_string(), |pointer| walk(item, pointer, deeper - 1, texts))),
        Value::Object(members) => {
            let mut renamed = Vec::new();
            for name in members.keys() {
                if let Some(kept) = texts.name(name, pointer)? {
                    renamed.push((name.clone(), kept));
                }
            }
            for (name, kept) in renamed {
                if T::REJECTS && members.contains_key(&kept) {
                    return Err(Error::invalid(pointer.as_str(), "invalid_text", "Two members have the same name."));
                }
                if let Some(member) = members.remove(&name) {
                    members.entry(kept).or_insert(member);
                }
            }
            members
                .iter_mut()
                .try_for_each(|(name, member)| below(pointer, name, |pointer| walk(member, pointer, deeper - 1, texts)))
        }
        _ => Ok(()),
    }
}

/// The error for a text that breaks the rule of [`crate::text`].
#[must_use]
pub fn unfit_text(pointer: &str, unfit: Unfit) -> Error {
    Error::invalid(pointer, "invalid_text", format!("Text {unfit}."))
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
