//! A form that was sent after the session had ended, or from a page of an earlier session. The sign-in form carries it along, and
//! afterwards the user can send it again, so that nobody loses what they wrote. The server stores none of it.
//!
//! Passwords, keys and files are not carried: a page that shows what was written must not hold them.

use actix_web::{HttpMessage, HttpRequest, dev::Payload, http::header};
use askama::Template;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{
    answer::is_htmx,
    submitted::{Holds, TOKEN_FIELD, body},
};
use base::{
    error::{Code, Error},
    text,
};
use edge::http::forms::from_our_page;

const SIGN_IN_THEN_SEND: &str =
    "You were signed out, so your changes are not saved yet. Sign in, then send them again.";
const SIGN_IN_THEN_TYPE: &str =
    "You were signed out, so nothing was changed. Sign in, then enter your passwords or keys again.";
const SIGN_IN_THEN_CHOOSE: &str = "You were signed out, so your file was not read. Sign in, then choose it again.";
const TOO_LARGE: &str =
    "You were signed out, and the form is larger than any that can be saved. Sign in, then send less of it.";

/// The fields of a form, and the address that it was sent to.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingForm {
    pub(super) path: String,
    /// [`Fields`] as JSON in base64; empty if there is nothing to send again.
    pub(super) fields: String,
    /// What the sign-in form says about it.
    pub(super) notice: &'static str,
}

/// What is sent again.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Fields {
    pub(super) fields: Vec<(String, String)>,
    /// Passwords or keys were left out.
    pub(super) without_secrets: bool,
}

impl Fields {
    /// All but secrets, and the token of the session that ended.
    fn of(sent: impl Iterator<Item = (String, String)>) -> Self {
        let mut kept = Self::default();
        for (name, value) in sent {
            if name.contains("password") || name.contains("api_key") {
                kept.without_secrets |= !value.is_empty();
            } else if name != TOKEN_FIELD {
                kept.fields.push((name, value));
            }
        }
        kept
    }
}

impl PendingForm {
    /// The form that the sign-in form carried.
    pub(super) fn carried(path: &str, fields: &str) -> Self {
        Self { path: path.to_owned(), fields: fields.to_owned(), notice: "" }
    }

    fn new(path: &str, kept: &Fields) -> Self {
        if kept.fields.is_empty() && kept.without_secrets {
            return Self::lost(path, SIGN_IN_THEN_TYPE);
        }
        let json = serde_json::to_vec(kept).unwrap_or_default();
        Self { path: path.to_owned(), fields: BASE64_URL_SAFE_NO_PAD.encode(json), notice: SIGN_IN_THEN_SEND }
    }

    fn lost(path: &str, notice: &'static str) -> Self {
        Self { path: path.to_owned(), fields: String::new(), notice }
    }

    /// What is sent again. A browser may have changed it.
    pub(super) fn read(&self) -> Fields {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.fields).unwrap_or_default();
        let mut kept: Fields = serde_json::from_slice(&bytes).unwrap_or_default();
        kept.fields
            .retain(|(name, value)| name != TOKEN_FIELD && text::checked(name).is_ok() && text::checked(value).is_ok());
        kept
    }
}

/// Stores the form of somebody whose session ended with the request, if it comes from one of our pages.
pub(super) async fn leave(request: &HttpRequest, payload: &mut Payload) {
    if request.method() != "POST" || is_htmx(request) || from_our_page(request).is_err() {
        return;
    }
    let media = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.to_ascii_lowercase();
    let form = if media.starts_with("application/x-www-form-urlencoded") {
        match body(request, payload, Holds::Fields.bytes_max()).await {
            Ok(bytes) => {
                PendingForm::new(request.path(), &Fields::of(url::form_urlencoded::parse(&bytes).into_owned()))
            }
            Err(error) if error.code == Code::PayloadTooLarge => PendingForm::lost(request.path(), TOO_LARGE),
            Err(_) => return,
        }
    } else if media.starts_with("multipart/form-data") {
        PendingForm::lost(request.path(), SIGN_IN_THEN_CHOOSE)
    } else {
        return;
    };
    request.extensions_mut().insert(form);
}

/// Stores a form from a page of an earlier session of somebody who is signed in.
pub(super) fn set_aside<'a>(request: &HttpRequest, fields: impl Iterator<Item = (&'a str, &'a str)>) {
    let owned = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    request.extensions_mut().insert(PendingForm::new(request.path(), &Fields::of(owned)));
}

/// The form that was stored with the request.
pub(super) fn of(request: &HttpRequest) -> Option<PendingForm> {
    request.extensions().get::<PendingForm>().cloned()
}

/// The page from which the user sends the form again.
#[derive(Template)]
#[template(path = "admin/pending-form.html")]
pub(super) struct PendingFormPage<'a> {
    pub(super) heading: &'a str,
    pub(super) path: &'a str,
    pub(super) next: &'a str,
    pub(super) token_field: &'static str,
    pub(super) token: String,
    pub(super) kept: Fields,
}

impl PendingFormPage<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// `internal` if it cannot be written.
    pub(super) fn html(&self) -> Result<String, Error> {
        self.render().map_err(Error::internal)
    }
}
