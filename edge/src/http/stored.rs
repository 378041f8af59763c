//! The bytes of an answer, as they are sent and as an idempotency key keeps them.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sqlx::postgres::PgRow;

use super::etag;
use base::{
    error::{Error, Result},
    stored::Columns,
};

/// A successful answer as bytes: its status, headers and JSON. It is serialised without the JSON, which is stored apart from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoredAnswer {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) etag: Option<String>,
    #[serde(skip)]
    pub(super) body: Vec<u8>,
    /// Whether it was given to an earlier request.
    #[serde(skip)]
    pub(super) is_replayed: bool,
}

impl StoredAnswer {
    /// The answer that a key keeps.
    ///
    /// # Errors
    /// `internal` if the row cannot be read.
    pub fn of_row(row: &PgRow) -> Result<Self> {
        let headers: Self = row.read_json("headers")?;
        let body = row.read::<Option<Vec<u8>>>("body")?.unwrap_or_default();
        Ok(Self { body, is_replayed: true, ..headers })
    }

    /// The JSON.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Its value, or a part of it.
    ///
    /// # Errors
    /// `internal` if it is not of this type.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(Error::internal)
    }

    /// The answer to a read: 304 without a body if the client already has this version.
    #[must_use]
    pub(super) fn unless_known(self, request: &HttpRequest) -> HttpResponse {
        match &self.etag {
            Some(tag) if etag::is_known(request, tag) => {
                HttpResponse::NotModified().insert_header((header::ETAG, tag.as_str())).finish()
            }
            _ => self.into(),
        }
    }
}

impl From<StoredAnswer> for HttpResponse {
    fn from(stored: StoredAnswer) -> Self {
        let mut response = HttpResponse::build(StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK));
        if let Some(location) = stored.location {
            response.insert_header((header::LOCATION, location));
        }
        if let Some(etag) = stored.etag {
            response.insert_header((header::ETAG, etag));
        }
        if stored.is_replayed {
            response.insert_header(("idempotency-replayed", "true"));
        }
        if stored.status == 204 {
            return response.finish();
        }
        response.content_type("application/json").body(stored.body)
    }
}
