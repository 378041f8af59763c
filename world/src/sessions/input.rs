//! Reads a frontend's data about its own world. Unknown members are ignored; sizes are limited.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use base::{
    error::{Error, FieldError, Result},
    text,
};
use edge::http::read;

/// The most characters of a name, an id or a state.
pub const TEXT_CHARS_MAX: usize = 300;

/// The members that are names in the data of frontends.
const NAMES: [&str; 4] = ["name", "alias", "speaker", "title"];

/// Reads a value from the pointer `at` in the request.
///
/// # Errors
/// `validation_failed` with a pointer below `at`.
pub fn read<T: DeserializeOwned>(value: Value, at: &str) -> Result<T> {
    read::typed(value).map_err(|error: Error| error.below(at))
}

/// Puts names on one line, wherever they are in the value. Nobody is there to correct what a frontend reports.
pub fn put_names_on_one_line(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(put_names_on_one_line),
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(name) if NAMES.contains(&member.as_str()) => {
                        if let Cow::Owned(line) = text::on_one_line(name) {
                            *name = line;
                        }
                    }
                    value => put_names_on_one_line(value),
                }
            }
        }
        _ => {}
    }
}

/// Checks sizes and collects the errors.
pub struct Checked {
    at: String,
    errors: Vec<FieldError>,
}

impl Checked {
    /// Starts below a pointer.
    #[must_use]
    pub fn at(at: &str) -> Self {
        Self { at: at.to_owned(), errors: Vec::new() }
    }

    fn broken(&mut self, name: &str, message: String) {
        if self.errors.len() < 20 {
            let pointer = format!("{}/{name}", self.at);
            self.errors.push(FieldError { pointer, code: "invalid_value".into(), message });
        }
    }

    /// Checks a short text.
    pub fn text(&mut self, name: &str, text: &str) {
        if text.len() > TEXT_CHARS_MAX && text.chars().count() > TEXT_CHARS_MAX {
            self.broken(name, format!("must have at most {TEXT_CHARS_MAX} characters"));
        }
    }

    /// Checks the length of a list.
    pub fn count(&mut self, name: &str, n: usize, max: usize) {
        if n > max {
            self.broken(name, format!("must have at most {max} entries"));
        }
    }

    /// Returns the errors, if there are any.
    ///
    /// # Errors
    /// `validation_failed`.
    pub fn finish(self) -> Result<()> {
        if self.errors.is_empty() { Ok(()) } else { Err(Error::validation(self.errors)) }
    }
}
