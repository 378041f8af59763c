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
    submitted::{FIELDS_MAX, Holds, Submitted, TOKEN_FIELD, body},
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
const SIGN_IN_THEN_CHOOSE: &str =
    "You were signed out, so nothing of the form was read. Sign in, then choose your file again.";
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

/// Fields that are not carried.
const SECRETS: [&str; 6] = ["password", "new_password", "again", "code", "api_key", "llm_api_key"];

impl Fields {
    /// All but secrets, and the token of the session that ended. None if there are too many.
    fn of(sent: impl Iterator<Item = (String, String)>) -> Option<Self> {
        let mut kept = Self::default();
        for (name, value) in sent {
            if SECRETS.contains(&name.as_str()) {
                kept.without_secrets |= !value.is_empty();
            } else if kept.fields.len() == FIELDS_MAX {
                return None;
            } else if name != TOKEN_FIELD {
                kept.fields.push((name, text::cleaned(&value).into_owned()));
            }
        }
        Some(kept)
    }
}

impl PendingForm {
    /// The form that the sign-in form carried.
    pub(super) fn carried(path: &str, fields: &str) -> Self {
        Self { path: path.to_owned(), fields: fields.to_owned(), notice: "" }
    }

    fn new(request: &HttpRequest, sent: impl Iterator<Item = (String, String)>) -> Self {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let lost = |notice| Self { path: path.clone(), fields: String::new(), notice };
        let Some(kept) = Fields::of(sent) else { return lost(TOO_LARGE) };
        if kept.fields.is_empty() && kept.without_secrets {
            return lost(SIGN_IN_THEN_TYPE);
        }
        let json = serde_json::to_vec(&kept).unwrap_or_default();
        if json.len() > Holds::Fields.bytes_max() {
            return lost(TOO_LARGE);
        }
        Self { fields: BASE64_URL_SAFE_NO_PAD.encode(json), ..lost(SIGN_IN_THEN_SEND) }
    }

    fn lost(request: &HttpRequest, notice: &'static str) -> Self {
        Self { path: request.path().to_owned(), fields: String::new(), notice }
    }

    /// What is sent again; None if nothing was carried. A browser may have changed it.
    pub(super) fn read(&self) -> Option<Fields> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.fields).ok().filter(|bytes| !bytes.is_empty())?;
        let mut kept: Fields = serde_json::from_slice(&bytes).ok()?;
        kept.fields.truncate(FIELDS_MAX);
        kept.fields.retain(|(name, _)| name != TOKEN_FIELD);
        Some(kept)
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
            Ok(bytes) => PendingForm::new(request, url::form_urlencoded::parse(&bytes).into_owned()),
            Err(error) if error.code == Code::PayloadTooLarge => PendingForm::lost(request, TOO_LARGE),
            Err(_) => return,
        }
    } else if media.starts_with("multipart/form-data") {
        PendingForm::lost(request, SIGN_IN_THEN_CHOOSE)
    } else {
        return;
    };
    request.extensions_mut().insert(form);
}

/// Stores a form from a page of an earlier session of somebody who is signed in.
pub(super) fn set_aside(request: &HttpRequest, form: &Submitted) {
    // The sign-in form itself carries another.
    let form = match form.get("kept") {
        Some(kept) => PendingForm::carried(form.text("kept_path"), kept),
        None => PendingForm::new(request, form.fields().map(|(name, value)| (name.to_owned(), value.to_owned()))),
    };
    request.extensions_mut().insert(form);
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
