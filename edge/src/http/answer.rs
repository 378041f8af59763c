//! What a service answers: a value with its status, place and version. It becomes bytes where it is sent or stored.

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use serde::Serialize;

use super::{StoredAnswer, etag};
use base::error::{Error, Result};

/// A value as a successful answer.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    pub value: T,
    status: u16,
    location: Option<String>,
    tag: Tag,
    is_replayed: bool,
}

/// What the ETag is made of.
#[derive(Clone, Copy, Debug)]
enum Tag {
    Nothing,
    Version(i64),
    Body,
}

impl<T> Answer<T> {
    /// 200.
    pub fn ok(value: T) -> Self {
        Self { value, status: 200, location: None, tag: Tag::Nothing, is_replayed: false }
    }

    /// 200, with the ETag of a version.
    pub fn versioned(version: i64, value: T) -> Self {
        Self { tag: Tag::Version(version), ..Self::ok(value) }
    }

    /// 201, with the path of what was created and the ETag of its version.
    pub fn created(location: String, version: i64, value: T) -> Self {
        Self { status: 201, ..Self::versioned(version, value).at(location) }
    }

    /// 202: the work will be done later.
    pub fn accepted(value: T) -> Self {
        Self { status: 202, ..Self::ok(value) }
    }

    /// With the ETag of the body, for a value that has no version.
    #[must_use]
    pub fn tagged(self) -> Self {
        Self { tag: Tag::Body, ..self }
    }

    /// With the path of what it is about.
    #[must_use]
    pub fn at(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }

    /// Whether the request was answered before.
    #[must_use]
    pub fn replayed(self, is_replayed: bool) -> Self {
        Self { is_replayed, ..self }
    }

    /// The same answer, with its value borrowed.
    #[must_use]
    pub fn by_ref(&self) -> Answer<&T> {
        let Self { value, status, location, tag, is_replayed } = self;
        Answer { value, status: *status, location: location.clone(), tag: *tag, is_replayed: *is_replayed }
    }

    /// The same answer with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { value, status, location, tag, is_replayed } = self;
        Answer { value: change(value), status, location, tag, is_replayed }
    }

    /// The path of what it is about.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }
}

impl Answer<()> {
    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self { status: 204, ..Self::ok(()) }
    }
}

impl<T: Serialize> Answer<T> {
    /// Its bytes.
    ///
    /// # Errors
    /// `internal` if the value cannot be written as JSON.
    pub(super) fn to_stored(&self) -> Result<StoredAnswer> {
        let body = match self.status {
            204 => Vec::new(),
            _ => serde_json::to_vec(&self.value).map_err(Error::internal)?,
        };
        let etag = match self.tag {
            Tag::Nothing => None,
            Tag::Version(version) => Some(etag::of(version)),
            Tag::Body => Some(etag::of_content(&body)),
        };
        let Self { status, location, is_replayed, .. } = self;
        Ok(StoredAnswer { status: *status, location: location.clone(), etag, body, is_replayed: *is_replayed })
    }

    /// The answer to a read: 304 without a body if the client already has this version.
    ///
    /// # Errors
    /// `internal` if the value cannot be written as JSON.
    pub fn unless_known(&self, request: &HttpRequest) -> Result<HttpResponse> {
        Ok(self.to_stored()?.unless_known(request))
    }
}

impl<T: Serialize> From<Answer<T>> for HttpResponse {
    fn from(answer: Answer<T>) -> Self {
        answer.to_stored().map_or_else(HttpResponse::from_error, Into::into)
    }
}

impl<T: Serialize> Responder for Answer<T> {
    type Body = BoxBody;
    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.into()
    }
}
