//! The id of a request. It connects an answer with the log.

use actix_web::{HttpMessage, HttpRequest};
use uuid::Uuid;

use crate::clock;

/// The punctuation of a client's id.
const PUNCTUATION: &[u8] = b"-_.:/+=@~";

fn is_of_ids(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || PUNCTUATION.contains(byte)
}

/// The id of a request, generated here or taken from `X-Request-Id`.
#[derive(Clone, Debug)]
pub enum RequestId {
    /// A UUID: ours, or the client's if it sent one.
    Uuid(Uuid),
    /// Another name that the client gave: at most 128 letters and digits of ASCII and some punctuation.
    Given(String),
}

impl RequestId {
    /// A new id.
    #[must_use]
    pub fn generate() -> Self {
        Self::Uuid(clock::id())
    }

    /// The client's id if it is short and has no characters but those that ids have, otherwise a new one.
    #[must_use]
    pub fn from_header(value: Option<&[u8]>) -> Self {
        let given = value
            .filter(|v| (1..=128).contains(&v.len()) && v.iter().all(is_of_ids))
            .and_then(|v| std::str::from_utf8(v).ok());
        match given {
            None => Self::generate(),
            Some(text) => match Uuid::try_parse(text) {
                Ok(id) if text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase()) => Self::Uuid(id),
                _ => Self::Given(text.to_owned()),
            },
        }
    }

    /// The id as a UUID, if it is one.
    #[must_use]
    pub fn as_uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(id) => Some(*id),
            Self::Given(_) => None,
        }
    }

    /// The name the client gave; empty if the id is a UUID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uuid(_) => "",
            Self::Given(text) => text,
        }
    }

    /// The id of `request`, as set by the middleware.
    #[must_use]
    pub fn of(request: &HttpRequest) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_else(Self::generate)
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uuid(id) => id.fmt(f),
            Self::Given(text) => text.fmt(f),
        }
    }
}
