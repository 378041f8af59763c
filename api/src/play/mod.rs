//! The table in a browser: a small page where somebody with a player's link plays one character.
//!
//! - [`visit`] and [`link`]: a link is `/play/{campaign}#token`; the token (a player's access token) is traded for a cookie, and what comes
//!   after the `#` never reaches a server's log. A visit ends with its key, as its token would.
//! - [`table`]: what a player sees: what was said, the own sheet, fights. [`live`] keeps it so over server-sent events.
//! - [`act`]: what a player does: speak, and roll dice; [`whisper`]: `/w NAME …`.
//!
//! It shows what the API shows a player's token and nothing else, and works with htmx and one file of script of our own;
//! without script a page has to be loaded anew to see what came. Everything a model or a player wrote is escaped.

mod act;
pub mod link;
mod live;
mod table;
mod visit;
mod whisper;

use actix_web::{HttpRequest, HttpResponse, error::UrlencodedError, http::StatusCode, web};
use askama::Template;

use crate::{
    error::{Code, Error, Result},
    http::reply::html,
};

/// Registers the pages.
pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::scope("/play")
            .app_data(web::FormConfig::default().limit(FORM_BYTES_MAX))
            .service(visit::enter)
            .service(visit::leave)
            .service(table::page)
            .service(act::say)
            .service(act::roll)
            .service(live::follow)
            .service(live::turn),
    );
}

/// A form's bytes: 4,000 characters, each written in at most twelve.
const FORM_BYTES_MAX: usize = 64 * 1024;

fn rendered(template: &impl Template) -> Result<HttpResponse> {
    Ok(html(StatusCode::OK, template.render().map_err(Error::internal)?))
}

#[derive(Template)]
#[template(path = "play/alert.html")]
struct Alert<'a> {
    message: &'a str,
}

/// An error on a page of its own, for whoever has no script that would put it into the page.
#[derive(Template)]
#[template(path = "play/notice.html")]
struct Notice<'a> {
    message: &'a str,
    back: &'a str,
}

/// A form, or why it cannot be read.
type Filled<T> = std::result::Result<web::Form<T>, actix_web::Error>;

/// What somebody filled in.
fn filled<T>(form: Filled<T>) -> Result<T> {
    form.map(web::Form::into_inner).map_err(|error| {
        let code = match error.as_error() {
            Some(UrlencodedError::Overflow { .. }) => Code::PayloadTooLarge,
            Some(UrlencodedError::ContentType) => Code::UnsupportedMediaType,
            _ => Code::BadRequest,
        };
        Error::new(code, "This form cannot be read. Load the page again.")
    })
}

/// Whether htmx asks, which puts what comes into the page.
fn is_htmx(request: &HttpRequest) -> bool {
    request.headers().contains_key("hx-request")
}

/// An error as a person reads it.
fn alert(request: &HttpRequest, error: &Error) -> HttpResponse {
    let details: Vec<&str> = error.errors.iter().map(|field| field.message.as_str()).collect();
    let message = if details.is_empty() { error.detail.clone() } else { details.join(" ") };
    if error.code == Code::Internal {
        tracing::error!(code = error.code.as_str(), cause = error.cause().map(ToString::to_string), "a page failed");
    }
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = match is_htmx(request) {
        true => Alert { message: &message }.render(),
        false => Notice { message: &message, back: &table_of(request) }.render(),
    };
    match page {
        Ok(page) => html(status, page),
        Err(error) => {
            tracing::error!(%error, "an alert cannot be shown");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// The path of the table that a request is about, as it was written.
fn table_of(request: &HttpRequest) -> String {
    let campaign = request.path().strip_prefix("/play/").and_then(|rest| rest.split('/').next());
    format!("/play/{}", campaign.unwrap_or_default())
}

/// A page's answer, whatever came of it.
fn shown(request: &HttpRequest, result: Result<HttpResponse>) -> HttpResponse {
    result.unwrap_or_else(|error| alert(request, &error))
}
