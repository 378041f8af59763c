//! Strong ETags made from a row's version, and the preconditions that use them.

use actix_web::{HttpRequest, http::header};

use crate::error::{Code, Error, Result};

/// The ETag of a version.
#[must_use]
pub fn of(version: i64) -> String {
    format!("\"v{version}\"")
}

/// Whether `If-Match`, if sent, names `version`.
///
/// # Errors
/// `precondition_failed` if it does not.
pub fn check(request: &HttpRequest, version: i64) -> Result<()> {
    let Some(value) = request.headers().get(header::IF_MATCH) else { return Ok(()) };
    if lists(value, version) {
        return Ok(());
    }
    Err(Error::new(Code::PreconditionFailed, format!("The resource is at {} now.", of(version))))
}

/// Whether `If-None-Match` names `version`, so that the client already has the body.
#[must_use]
pub fn is_known(request: &HttpRequest, version: i64) -> bool {
    request.headers().get(header::IF_NONE_MATCH).is_some_and(|value| lists(value, version))
}

fn lists(value: &header::HeaderValue, version: i64) -> bool {
    let tag = of(version);
    value.to_str().is_ok_and(|list| list.split(',').map(str::trim).any(|t| t == "*" || t == tag))
}
