//! The table in a browser: a small page where a person with a player link plays one character.
//!
//! - [`visit`]: a player link, which `edge::auth::player_link` makes, is `/play/{campaign}#token`. The server exchanges the token (a player's access
//!   token) for a cookie. The part after the `#` never reaches a server's log. A visit ends with its key, like its
//!   token.
//! - [`table`]: what a player sees: the messages, the character sheet, and fights. [`live`] updates it with
//!   server-sent events.
//! - [`act`]: what a player does: speaking and rolling dice. [`whisper`] handles `/w NAME …`.
//!
//! The page shows only what the API shows to a player's token. It uses htmx and one script of our own. Without
//! JavaScript, players reload the page to see news. Everything that a model or a player wrote is escaped.

mod act;
mod live;
mod table;
mod visit;
mod whisper;

use actix_web::{HttpRequest, HttpResponse, error::UrlencodedError, http::StatusCode, web};
use askama::Template;

use base::error::{Code, Error, Result};
use edge::http::reply::html;

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
            .service(act::try_again)
            .service(act::choose)
            .service(act::meet)
            .service(live::follow)
            .service(live::turn),
    );
}

/// The most bytes of a form: 4,000 characters, each written in at most twelve bytes.
const FORM_BYTES_MAX: usize = 64 * 1024;

fn rendered(template: &impl Template) -> Result<HttpResponse> {
    Ok(html(StatusCode::OK, template.render().map_err(Error::internal)?))
}

#[derive(Template)]
#[template(path = "play/alert.html")]
struct Alert<'a> {
    message: &'a str,
}

/// A message on its own page, for browsers without JavaScript.
#[derive(Template)]
#[template(path = "play/notice.html")]
struct Notice<'a> {
    message: &'a str,
    back: &'a str,
}

/// A form, or the reason why it cannot be read.
type Filled<T> = std::result::Result<web::Form<T>, actix_web::Error>;

/// The contents of a form.
fn filled<T>(form: Filled<T>) -> Result<T> {
    form.map(web::Form::into_inner).map_err(|error| {
        let code = match error.as_error() {
            Some(UrlencodedError::Overflow { .. }) => Code::PayloadTooLarge,
            Some(UrlencodedError::ContentType) => Code::UnsupportedMediaType,
            _ => Code::BadRequest,
        };
        Error::new(code, "This form cannot be read. Reload the page.")
    })
}

/// Whether htmx sent the request and puts the response into the page.
fn is_htmx(request: &HttpRequest) -> bool {
    request.headers().contains_key("hx-request")
}

/// An error for people to read.
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
            tracing::error!(%error, "cannot render an alert");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// The path of the request's table, as it was written in the request.
fn table_of(request: &HttpRequest) -> String {
    let campaign = request.path().strip_prefix("/play/").and_then(|rest| rest.split('/').next());
    format!("/play/{}", campaign.unwrap_or_default())
}

/// The response of a page, or its error.
fn page_or_alert(request: &HttpRequest, result: Result<HttpResponse>) -> HttpResponse {
    result.unwrap_or_else(|error| alert(request, &error))
}
