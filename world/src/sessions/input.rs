//! Reads a frontend's data about its own world. Unknown members are ignored; sizes are limited.

use serde::de::DeserializeOwned;
use serde_json::Value;

use base::error::{Error, FieldError, Result};
use edge::http::read;

/// The most characters of a name, an id or a state.
pub const TEXT_CHARS_MAX: usize = 300;

/// Reads a value from the pointer `at` in the request.
///
/// # Errors
/// `validation_failed` with a pointer below `at`.
pub fn read<T: DeserializeOwned>(value: Value, at: &str) -> Result<T> {
    read::typed(value).map_err(|error: Error| error.below(at))
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
