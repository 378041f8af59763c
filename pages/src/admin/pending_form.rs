//! A form that was sent after the session had ended. The sign-in form carries it along, and afterwards the user can
//! send it again, so that nobody loses what they wrote. The server stores none of it.

use actix_web::{HttpMessage, HttpRequest, dev::Payload, http::header, web::Bytes};
use askama::Template;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    answer::is_htmx,
    submitted::{TOKEN_FIELD, body},
};
use base::text;
use edge::http::forms::from_our_page;

/// The largest form that is carried. Encoded once more, it still fits into the sign-in form.
const BYTES_MAX: usize = 44 * 1024;

/// The fields of a form as they were sent, and the address that they were sent to.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingForm {
    pub(super) path: String,
    /// URL-encoded fields in base64; empty if they were too large or contained a secret.
    pub(super) fields: String,
}

impl PendingForm {
    /// The fields without the token of the session that ended.
    pub(super) fn read(&self) -> Vec<(String, String)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.fields).unwrap_or_default();
        let pairs = url::form_urlencoded::parse(&bytes).into_owned();
        pairs
            .filter(|(name, value)| name != TOKEN_FIELD && text::checked(name).is_ok() && text::checked(value).is_ok())
            .collect()
    }
}

/// Stores the form of somebody whose session ended with the request, if it comes from one of our pages.
pub(super) async fn leave(request: &HttpRequest, payload: &mut Payload) {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is_form = header(header::CONTENT_TYPE).starts_with("application/x-www-form-urlencoded");
    let is_small = header(header::CONTENT_LENGTH).parse::<usize>().is_ok_and(|n| n <= BYTES_MAX);
    if request.method() != "POST" || is_htmx(request) || from_our_page(request).is_err() {
        return;
    }
    let bytes = match is_form && is_small {
        true => body(request, payload, BYTES_MAX).await.unwrap_or_default(),
        false => Bytes::new(),
    };
    // Secrets must not go into a page that shows what was written.
    let is_secret =
        url::form_urlencoded::parse(&bytes).any(|(name, _)| name.contains("password") || name.contains("api_key"));
    let fields = if is_secret { String::new() } else { BASE64_URL_SAFE_NO_PAD.encode(bytes) };
    request.extensions_mut().insert(PendingForm { path: request.path().to_owned(), fields });
}

/// The form that was stored with the request.
pub(super) fn of(request: &HttpRequest) -> Option<PendingForm> {
    request.extensions().get::<PendingForm>().cloned()
}

/// The page after signing in, from which the user sends the form again.
#[derive(Template)]
#[template(path = "admin/pending-form.html")]
pub(super) struct PendingFormPage {
    pub(super) path: String,
    pub(super) next: String,
    pub(super) token_field: &'static str,
    pub(super) token: String,
    pub(super) fields: Vec<(String, String)>,
}
