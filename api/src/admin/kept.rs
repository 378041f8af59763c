//! A form that was sent after the session had ended: it is carried through signing in and asked about then, so that nobody loses what
//! they wrote. It travels in the sign-in form itself; the server keeps none of it.

use actix_web::{HttpMessage, HttpRequest, dev::Payload, http::header, web::Bytes};
use askama::Template;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::submitted::{TOKEN_FIELD, body};
use crate::http::forms::from_our_page;

/// Bytes of a form that is carried; written once more it still fits into the form to sign in.
const BYTES_MAX: usize = 44 * 1024;

/// The fields of a form as they were sent, and where to.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) path: String,
    /// As a form sends fields, in base64; empty if they were too much.
    pub(super) fields: String,
}

impl Kept {
    /// Its fields without the token of the visit that ended.
    pub(super) fn read(&self) -> Vec<(String, String)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.fields).unwrap_or_default();
        let pairs = url::form_urlencoded::parse(&bytes).into_owned();
        pairs.filter(|(name, value)| name != TOKEN_FIELD && !name.contains('\0') && !value.contains('\0')).collect()
    }
}

/// Leaves the form of somebody whose session ended with the request, if it comes from a page of ours.
pub(super) async fn leave(request: &HttpRequest, payload: &mut Payload) {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is_form = header(header::CONTENT_TYPE).starts_with("application/x-www-form-urlencoded");
    let is_small = header(header::CONTENT_LENGTH).parse::<usize>().is_ok_and(|n| n <= BYTES_MAX);
    if request.method() != "POST" || super::is_htmx(request) || from_our_page(request).is_err() {
        return;
    }
    let bytes = match is_form && is_small {
        true => body(request, payload, BYTES_MAX).await.unwrap_or_default(),
        false => Bytes::new(),
    };
    // A page that shows what was written is no place for secrets.
    let is_secret =
        url::form_urlencoded::parse(&bytes).any(|(name, _)| name.contains("password") || name.contains("api_key"));
    let fields = if is_secret { String::new() } else { BASE64_URL_SAFE_NO_PAD.encode(bytes) };
    request.extensions_mut().insert(Kept { path: request.path().to_owned(), fields });
}

/// What was left with a request.
pub(super) fn of(request: &HttpRequest) -> Option<Kept> {
    request.extensions().get::<Kept>().cloned()
}

/// What was written, to be sent again by who has signed in.
#[derive(Template)]
#[template(path = "admin/kept.html")]
pub(super) struct KeptPage {
    pub(super) path: String,
    pub(super) next: String,
    pub(super) token_field: &'static str,
    pub(super) token: String,
    pub(super) fields: Vec<(String, String)>,
}
