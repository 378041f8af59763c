//! What the pages at the table answer, and how they read a form.

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, error::UrlencodedError, http::StatusCode, web};
use askama::Template;
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;

use base::{
    error::{Code, Error, Result},
    json, text,
};
use edge::http::page::html;

use crate::table::notes::{Alert, Aside};

pub(super) fn rendered(template: &impl Template) -> Result<HttpResponse> {
    Ok(html(StatusCode::OK, template.render().map_err(Error::internal)?))
}

/// A message on its own page, for browsers without JavaScript.
#[derive(Template)]
#[template(path = "play/notice.html")]
pub(super) struct Notice<'a> {
    pub(super) message: &'a str,
    pub(super) back: &'a str,
}

/// Tells something only to the player who asked.
pub(super) fn told_alone(request: &HttpRequest, link: &str, message: &str) -> Result<HttpResponse> {
    match is_htmx(request) {
        true => rendered(&Aside { message }),
        false => rendered(&Notice { message, back: &format!("/play/{link}") }),
    }
}

/// Nothing to show: the news arrives live. Without JavaScript the page is reloaded.
pub(super) fn empty_or_redirect(request: &HttpRequest, link: &str) -> HttpResponse {
    if is_htmx(request) {
        return html(StatusCode::OK, String::new());
    }
    see(&format!("/play/{link}"))
}

/// Leads to another address.
pub(super) fn see(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header(("location", path)).finish()
}

/// A form, or the reason why it cannot be read.
pub(super) type Filled<T> = Result<Form<T>>;

/// The contents of a form.
pub(super) fn filled<T>(form: Filled<T>) -> Result<T> {
    form.map(|Form(contents)| contents)
}

/// A form whose texts can be stored.
pub(super) struct Form<T>(T);

impl<T: DeserializeOwned> FromRequest for Form<T> {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let pairs = web::Form::<Vec<(String, String)>>::from_request(request, payload);
        Box::pin(async move {
            let web::Form(pairs) = pairs.await.map_err(|error| unreadable(error.as_error()))?;
            let mut texts = url::form_urlencoded::Serializer::new(String::new());
            for (name, value) in &pairs {
                let value = text::checked(value).map_err(|unfit| json::unfit_text(&format!("/{name}"), unfit))?;
                texts.append_pair(name, &value);
            }
            let contents = web::Query::<T>::from_query(&texts.finish()).map_err(|_| unreadable(None))?;
            Ok(Self(contents.into_inner()))
        })
    }
}

fn unreadable(error: Option<&UrlencodedError>) -> Error {
    let code = match error {
        Some(UrlencodedError::Overflow { .. }) => Code::PayloadTooLarge,
        Some(UrlencodedError::ContentType) => Code::UnsupportedMediaType,
        _ => Code::BadRequest,
    };
    Error::new(code, "This form cannot be read. Reload the page.")
}

/// Whether htmx sent the request and puts the response into the page.
pub(super) fn is_htmx(request: &HttpRequest) -> bool {
    request.headers().contains_key("hx-request")
}

/// An error for people to read.
pub(super) fn alert(request: &HttpRequest, error: &Error) -> HttpResponse {
    alert_in(is_htmx(request), &table_of(request), error)
}

/// The same, in a page that is there or on a page of its own, which leads back to `table`.
pub(super) fn alert_in(is_htmx: bool, table: &str, error: &Error) -> HttpResponse {
    let details: Vec<&str> = error.errors.iter().map(|field| field.message.as_str()).collect();
    let message = if details.is_empty() { error.detail.clone() } else { details.join(" ") };
    if error.code == Code::Internal {
        tracing::error!(code = error.code.as_str(), cause = error.cause().map(ToString::to_string), "a page failed");
    }
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = match is_htmx {
        true => Alert { message: &message }.render(),
        false => Notice { message: &message, back: table }.render(),
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
pub(super) fn table_of(request: &HttpRequest) -> String {
    let campaign = request.path().strip_prefix("/play/").and_then(|rest| rest.split('/').next());
    format!("/play/{}", campaign.unwrap_or_default())
}

/// The response of a page, or its error.
pub(super) fn page_or_alert(request: &HttpRequest, result: Result<HttpResponse>) -> HttpResponse {
    result.unwrap_or_else(|error| alert(request, &error))
}
