//! Strong ETags, made from a row's version or, where there is no version, from the content; and the preconditions that
//! use them.

use actix_web::{HttpRequest, http::header};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Serialize;
use sha2::{Digest, Sha256};

use base::error::{Code, Error, Result};

/// The ETag of a version.
#[must_use]
pub fn of(version: i64) -> String {
    format!("\"v{version}\"")
}

/// The ETag of content that has no version.
#[must_use]
pub fn of_content(content: &[u8]) -> String {
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(content)[..16]))
}

/// The ETag of a value that has no version, as the answer with its JSON has it.
///
/// # Errors
/// `internal` if the value cannot be written as JSON.
pub fn of_value(value: &impl Serialize) -> Result<String> {
    Ok(of_content(&serde_json::to_vec(value).map_err(Error::internal)?))
}

/// Checks that `If-Match`, if sent, names `version`.
///
/// # Errors
/// `precondition_failed` if it does not.
pub fn check(request: &HttpRequest, version: i64) -> Result<()> {
    Expected::by(request).check(version)
}

/// The version that a writer expects, if any.
#[derive(Clone, Debug)]
pub struct Expected(Option<header::HeaderValue>);

impl Expected {
    /// The version in a request's `If-Match`.
    #[must_use]
    pub fn by(request: &HttpRequest) -> Self {
        Self(request.headers().get(header::IF_MATCH).cloned())
    }

    /// The version that a form showed when it was filled in.
    #[must_use]
    pub fn version(version: i64) -> Self {
        Self(header::HeaderValue::from_str(&of(version)).ok())
    }

    /// Any version will do.
    #[must_use]
    pub fn any() -> Self {
        Self(None)
    }

    /// Checks the row's version if one is expected.
    ///
    /// # Errors
    /// `precondition_failed` if it is not.
    pub fn check(&self, version: i64) -> Result<()> {
        self.check_tag(&of(version))
    }

    /// Checks the ETag of a resource without a version.
    ///
    /// # Errors
    /// `precondition_failed` if it is another one.
    pub fn check_tag(&self, tag: &str) -> Result<()> {
        // Compared strongly (RFC 9110, 13.1.1).
        if self.0.as_ref().is_none_or(|value| lists(value, |listed| listed == tag)) {
            return Ok(());
        }
        Err(Error::new(Code::PreconditionFailed, format!("The resource has changed. Its ETag is now {tag}.")))
    }
}

/// Whether `If-None-Match` names this ETag, so that the client already has the body. Compared weakly (RFC 9110, 13.1.2): proxies
/// that compress an answer make its ETag weak.
#[must_use]
pub fn is_known(request: &HttpRequest, tag: &str) -> bool {
    request.headers().get_all(header::IF_NONE_MATCH).any(|value| lists(value, |listed| strong(listed) == strong(tag)))
}

/// An ETag without the mark of a weak one.
fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn lists(value: &header::HeaderValue, is_meant: impl Fn(&str) -> bool) -> bool {
    value.to_str().is_ok_and(|list| list.split(',').map(str::trim).any(|listed| listed == "*" || is_meant(listed)))
}
