//! Reads JSON as a type. An error points to the first value that does not fit.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::misfit;
use base::{
    error::{Error, FieldError, Result},
    json::{Named, escape},
};

/// Reads `value` as `T`. If `T` has a schema, use [`bounds::typed`](super::bounds::typed) instead: it reports everything
/// that does not fit.
///
/// # Errors
/// `validation_failed` with a pointer to the first value that does not fit.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(Named(value)).map_err(|e| {
        let mut pointer = String::new();
        for segment in e.path() {
            use serde_path_to_error::Segment;
            match segment {
                Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
                Segment::Map { key } => pointer.push_str(&format!("/{}", escape(key))),
                Segment::Enum { variant } => pointer.push_str(&format!("/{}", escape(variant))),
                Segment::Unknown => {}
            }
        }
        let message = e.into_inner().to_string();
        let quoted = message.split('`').nth(1).map(ToOwned::to_owned).unwrap_or_default();
        let code = if message.starts_with("unknown field") {
            if !pointer.ends_with(&format!("/{}", escape(&quoted))) {
                pointer.push_str(&format!("/{}", escape(&quoted)));
            }
            "unknown_field"
        } else if message.starts_with("missing field") {
            pointer.push_str(&format!("/{}", escape(&quoted)));
            "required"
        } else {
            "invalid_value"
        };
        Error::validation(vec![FieldError { pointer, code: code.into(), message: misfit::in_words(&message) }])
    })
}
