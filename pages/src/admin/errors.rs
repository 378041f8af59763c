//! Errors of pages, for people.

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    middleware::Next,
};
use askama::Template;

use super::{
    answer::{html, is_htmx, see},
    pending_form, sign_in,
};
use base::error::{Code, Error};

/// Where users without a second factor are sent if their tenant requires one.
const ACCOUNT: &str = "/admin/account";

#[derive(Template)]
#[template(path = "admin/problem.html", blocks = ["alert"])]
struct ProblemPage<'a> {
    title: &'a str,
    message: &'a str,
    request_id: String,
}

/// Renders an error as a page, or as a fragment that htmx puts beside the form. Visitors who are not signed in are
/// redirected to the sign-in form.
pub(super) async fn errors_as_pages<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> std::result::Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let response = match next.call(request).await {
        Ok(response) => response.map_into_boxed_body(),
        Err(error) => return Err(error),
    };
    let Some(error) = response.response().error() else { return Ok(response) };
    let unknown;
    let error = match error.as_error::<Error>() {
        Some(error) => error,
        None => {
            unknown = Error::new(Code::BadRequest, "This address or form cannot be read.");
            &unknown
        }
    };
    let answer = refused(response.request(), error);
    Ok(response.into_response(answer))
}

fn refused(request: &HttpRequest, error: &Error) -> HttpResponse {
    if error.code == Code::Unauthenticated {
        return sign_in::sent_there(request);
    }
    if error.code == Code::Forbidden
        && let Some(kept) = pending_form::of(request).filter(|kept| !kept.fields.is_empty())
        && let Ok(page) = sign_in::of_an_earlier_session(request, &kept)
    {
        return page;
    }
    if error.code == Code::SecondFactorNeeded {
        return match is_htmx(request) {
            true => HttpResponse::Ok()
                .insert_header(("hx-redirect", ACCOUNT))
                .insert_header(("cache-control", "no-store"))
                .finish(),
            false => see(ACCOUNT),
        };
    }
    if error.code.status() >= 500 {
        let cause = error.cause().map(ToString::to_string);
        tracing::error!(code = error.code.as_str(), detail = %error.detail, cause, "a page failed");
    }
    let details: Vec<&str> = error.errors.iter().map(|field| field.message.as_str()).collect();
    let message = if details.is_empty() { error.detail.clone() } else { details.join(" ") };
    let request_id = base::request_id::RequestId::of(request).to_string();
    let page = ProblemPage { title: error.code.title(), message: &message, request_id };
    let body = if is_htmx(request) { page.as_alert().render() } else { page.render() };
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match body {
        Ok(body) => {
            let mut answer = html(status, body);
            if let Some(seconds) = error.retry_after_seconds {
                answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            if let Some(allow) = error.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
                answer.headers_mut().insert(header::ALLOW, allow);
            }
            answer
        }
        Err(error) => {
            tracing::error!(%error, "cannot render an error page");
            HttpResponse::InternalServerError().finish()
        }
    }
}
