//! Validation rules: converts garde's reports to field errors, and has the checks that many inputs share.

use garde::Validate;

use base::{
    error::{Error, FieldError, Result},
    text,
};

/// Validates `input` by its own rules.
///
/// # Errors
/// `validation_failed` with a pointer for each broken rule.
pub fn check<T: Validate<Context = ()>>(input: &T) -> Result<()> {
    let Err(report) = input.validate() else { return Ok(()) };
    let errors = report.iter().map(|(path, error)| FieldError {
        pointer: pointer(&path.to_string()),
        code: "invalid_value".into(),
        message: error.message().to_owned(),
    });
    Err(Error::validation(errors.collect()))
}

fn pointer(path: &str) -> String {
    let mut out = String::new();
    for part in path.split(['.', '[']).map(|p| p.trim_end_matches(']')).filter(|p| !p.is_empty()) {
        out.push('/');
        out.push_str(part);
    }
    out
}

/// A name or title: not blank, one line, at most 200 characters.
pub fn line(value: &str, _: &()) -> garde::Result {
    if value.trim().is_empty() {
        return Err(garde::Error::new("must not be blank"));
    }
    if value.chars().count() > 200 {
        return Err(garde::Error::new("must have at most 200 characters"));
    }
    if value.contains(char::is_control) {
        return Err(garde::Error::new("must not contain control characters"));
    }
    if value.contains(text::ends_line) {
        return Err(garde::Error::new("must be one line"));
    }
    Ok(())
}

/// A text that is not blank.
pub fn says_something(value: &str, _: &()) -> garde::Result {
    if value.trim().is_empty() { Err(garde::Error::new("must not be blank")) } else { Ok(()) }
}

/// An optional [`line()`].
pub fn opt_line(value: &Option<String>, cx: &()) -> garde::Result {
    value.as_deref().map_or(Ok(()), |v| line(v, cx))
}

/// An optional slug: `a-z`, `0-9`, `_` and `-`, at most 63 characters, not an id.
pub fn opt_slug(value: &Option<String>, _: &()) -> garde::Result {
    let Some(slug) = value else { return Ok(()) };
    let fits = (1..=63).contains(&slug.len())
        && slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        && !slug.starts_with(['_', '-'])
        && uuid::Uuid::try_parse(slug).is_err();
    if fits {
        Ok(())
    } else {
        Err(garde::Error::new("must be 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit"))
    }
}

/// A list of short texts: at most 100, each a [`line()`].
pub fn words(values: &[String], cx: &()) -> garde::Result {
    if values.len() > 100 {
        return Err(garde::Error::new("must have at most 100 entries"));
    }
    values.iter().try_for_each(|v| line(v, cx))
}

/// The largest size of clients' own keys as JSON, in bytes: enough for the parts of an imported card that we do not
/// use.
pub const EXTENSIONS_BYTES_MAX: usize = 64 * 1024;

/// Clients' own keys: at most 64 KiB of JSON.
pub fn extensions(value: &entity::shapes::Extensions, _: &()) -> garde::Result {
    if value.is_empty() || serde_json::to_vec(value).is_ok_and(|bytes| bytes.len() <= EXTENSIONS_BYTES_MAX) {
        return Ok(());
    }
    Err(garde::Error::new(format!("must have at most {EXTENSIONS_BYTES_MAX} bytes of JSON")))
}

/// JSON without a declared shape: at most [`super::bounds::BYTES`] bytes.
pub fn shapeless(value: &serde_json::Value, _: &()) -> garde::Result {
    if super::bounds::size(value) <= super::bounds::BYTES {
        return Ok(());
    }
    Err(garde::Error::new(format!("must have at most {} bytes of JSON", super::bounds::BYTES)))
}
