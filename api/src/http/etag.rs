//! Strong ETags made from a row's version, or from the content of what has none, and the preconditions that use them.

use actix_web::{HttpRequest, http::header};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};

/// The ETag of a version.
#[must_use]
pub fn of(version: i64) -> String {
    format!("\"v{version}\"")
}

/// The ETag of a content that has no version.
#[must_use]
pub fn of_content(content: &[u8]) -> String {
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(content)[..16]))
}

/// Whether `If-Match`, if sent, names `version`.
///
/// # Errors
/// `precondition_failed` if it does not.
pub fn check(request: &HttpRequest, version: i64) -> Result<()> {
    Expected::by(request).check(version)
}

/// The version that a writer has seen, if it says so.
#[derive(Clone, Debug)]
pub struct Expected(Option<header::HeaderValue>);

impl Expected {
    /// What a request's `If-Match` says.
    #[must_use]
    pub fn by(request: &HttpRequest) -> Self {
        Self(request.headers().get(header::IF_MATCH).cloned())
    }

    /// The version that a form was filled in from.
    #[must_use]
    pub fn version(version: i64) -> Self {
        Self(header::HeaderValue::from_str(&of(version)).ok())
    }

    /// No version is expected.
    #[must_use]
    pub fn any() -> Self {
        Self(None)
    }

    /// Whether it is the version that there is, if one is expected.
    ///
    /// # Errors
    /// `precondition_failed` if it is not.
    pub fn check(&self, version: i64) -> Result<()> {
        if self.0.as_ref().is_none_or(|value| lists(value, &of(version))) {
            return Ok(());
        }
        Err(Error::new(Code::PreconditionFailed, format!("The resource is at {} now.", of(version))))
    }
}

/// Whether `If-None-Match` names this ETag, so that the client already has the body.
#[must_use]
pub fn is_known(request: &HttpRequest, tag: &str) -> bool {
    request.headers().get(header::IF_NONE_MATCH).is_some_and(|value| lists(value, tag))
}

fn lists(value: &header::HeaderValue, tag: &str) -> bool {
    value.to_str().is_ok_and(|list| list.split(',').map(str::trim).any(|t| t == "*" || t == tag))
}
