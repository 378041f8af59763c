//! What forms at the game master's table answer.

use actix_web::{HttpResponse, http::StatusCode};

use crate::admin::{
    InCampaign,
    answer::{html, is_htmx, see},
};
use base::{
    clock,
    error::{Error, Result},
};

/// The field of a form that stands at the table, although its address is elsewhere.
pub(in crate::admin) const AT_TABLE: &str = "at_table";

/// The hidden field with the id of a form.
pub(super) fn form_id_field() -> String {
    format!(r#"<input type="hidden" name="form_id" value="{}">"#, clock::id())
}

/// The hidden fields of a fight's forms at the table.
pub(in crate::admin) fn fields_at_table(token: &str) -> String {
    format!(r#"{token}{}<input type="hidden" name="{AT_TABLE}" value="1">"#, form_id_field())
}

/// What a form at the table answers. The news itself arrives live. Without JavaScript the page is shown again.
///
/// # Errors
/// With JavaScript, why nothing was done, which is then shown beside the form.
pub(in crate::admin) fn done(at: &InCampaign, done: Result<()>) -> Result<HttpResponse> {
    match done {
        Ok(()) if is_htmx(&at.request) => Ok(html(StatusCode::OK, String::new())),
        Ok(()) => Ok(see(&at.url("table"))),
        Err(error) if is_htmx(&at.request) || error.code.status() >= 500 => Err(error),
        Err(error) => Ok(at.refuse(&at.url("table"), &words_of(&error))),
    }
}

/// An error in words.
pub(in crate::admin) fn words_of(error: &Error) -> String {
    let details: Vec<&str> = error.errors.iter().map(|field| field.message.as_str()).collect();
    if details.is_empty() { error.detail.to_string() } else { details.join(" ") }
}
