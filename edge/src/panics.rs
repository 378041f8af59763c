//! Keeps a panic within one request: the client gets an error with the request's id, the panic is counted and logged, and the
//! server goes on.
//!
//! Unwinding drops everything that the request held: transactions roll back, turns are left to the sweeper, and dice that were
//! looked at stay spent. Never show a panic's message to a client; it belongs in the log.
//!
//! [`caught`] runs a request's work and [`answer`] is the client's response. To guard other work, run it through [`caught`].

use std::{any::Any, fmt, panic::AssertUnwindSafe};

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header::HeaderMap},
};
use futures_util::{FutureExt, TryFutureExt};

use base::{
    error::{Error, Problem},
    metrics,
    rate::Rate,
    request_id::RequestId,
};

/// The work panicked. The message is in the log.
#[derive(Debug)]
pub struct Panicked;

/// Runs `work` and catches a panic. `what` names the work in the log.
///
/// # Errors
/// [`Panicked`].
pub fn caught<T>(what: &str, work: impl Future<Output = T>) -> impl Future<Output = Result<T, Panicked>> {
    // Nothing looks at what the work held after it is dropped.
    AssertUnwindSafe(work).catch_unwind().map_err(move |payload| {
        count(what, &*payload);
        Panicked
    })
}

/// Counts and logs a panic.
pub fn count(what: &str, payload: &(dyn Any + Send)) {
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    metrics::PANICS.inc();
    tracing::error!(what, said = said.unwrap_or("no text"), "a panic was caught");
}

/// The complete response to a request that panicked, with all headers, because the middleware that adds most of them is gone. `more` are
/// those of the request's own.
#[must_use]
pub fn answer(id: &RequestId, more: HeaderMap) -> actix_web::Error {
    Fault { id: id.to_string(), more }.into()
}

#[derive(Debug)]
struct Fault {
    id: String,
    more: HeaderMap,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request panicked")
    }
}

impl ResponseError for Fault {
    fn status_code(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }

    fn error_response(&self) -> HttpResponse {
        let error = Error::internal("a request panicked");
        let (policy, state) = Rate::unlimited("requests").headers();
        let mut answer = HttpResponse::InternalServerError()
            .content_type("application/problem+json")
            .insert_header(("x-request-id", self.id.as_str()))
            .insert_header(("x-content-type-options", "nosniff"))
            .insert_header(("cache-control", "private, no-store"))
            .insert_header(("ratelimit-policy", policy))
            .insert_header(("ratelimit", state))
            .body(serde_json::to_vec(&Problem::of(&error, &self.id)).unwrap_or_default());
        for (name, value) in &self.more {
            answer.headers_mut().append(name.clone(), value.clone());
        }
        answer
    }
}
