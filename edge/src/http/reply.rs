//! The bytes of an answer, as they are sent and as they are stored under an idempotency key; pages and files.

use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, http::StatusCode, http::header};
use serde::{Deserialize, Serialize};

use super::etag;
use base::error::{Error, Result};

/// A successful answer: status, headers and a JSON body.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    pub status: u16,
    pub location: Option<String>,
    pub etag: Option<String>,
    #[serde(skip)]
    pub body: Vec<u8>,
    /// Whether this is a stored answer.
    #[serde(skip)]
    pub replayed: bool,
}

impl Reply {
    /// 200 with a body.
    ///
    /// # Errors
    /// `internal` if the body cannot be written as JSON.
    pub fn ok(body: &impl Serialize) -> Result<Self> {
        Ok(Self { status: 200, body: serde_json::to_vec(body).map_err(Error::internal)?, ..Self::default() })
    }

    /// 202 with a body.
    ///
    /// # Errors
    /// `internal` if the body cannot be written as JSON.
    pub fn accepted(body: &impl Serialize) -> Result<Self> {
        Ok(Self { status: 202, ..Self::ok(body)? })
    }

    /// The answer to a read: 304 without a body if the client already has this version.
    #[must_use]
    pub fn unless_known(self, request: &HttpRequest) -> HttpResponse {
        match &self.etag {
            Some(tag) if etag::is_known(request, tag) => {
                HttpResponse::NotModified().insert_header((header::ETAG, tag.as_str())).finish()
            }
            _ => self.into(),
        }
    }
}

impl From<Reply> for HttpResponse {
    fn from(reply: Reply) -> Self {
        let mut response = HttpResponse::build(StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK));
        if let Some(location) = reply.location {
            response.insert_header((header::LOCATION, location));
        }
        if let Some(etag) = reply.etag {
            response.insert_header((header::ETAG, etag));
        }
        if reply.replayed {
            response.insert_header(("idempotency-replayed", "true"));
        }
        if reply.status == 204 {
            return response.finish();
        }
        response.content_type("application/json").body(reply.body)
    }
}

impl actix_web::Responder for Reply {
    type Body = actix_web::body::BoxBody;
    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.into()
    }
}

/// The page may use scripts, styles and connections from our own host only, and no inline scripts or styles.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; \
    img-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// One of our pages, with its security headers.
#[must_use]
pub fn html(status: StatusCode, body: String) -> HttpResponse {
    HttpResponse::build(status)
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .insert_header(("referrer-policy", "same-origin"))
        .insert_header(("cross-origin-opener-policy", "same-origin"))
        .insert_header(("cache-control", "no-store"))
        .body(body)
}

/// An answer that a browser saves as a file. `name` is made of slugs.
#[must_use]
pub fn attachment(media: &str, name: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type(media)
        .insert_header(("content-disposition", format!("attachment; filename=\"{name}\"")))
        .insert_header(("cache-control", "no-store"))
        .insert_header(("x-content-type-options", "nosniff"));
    response
}
