//! A panic is a fault of ours in one request, and stays one: its client is told of an error with the request's id, it is counted
//! and logged, and the server goes on.
//!
//! What the request held is dropped as its stack unwinds: transactions roll back, turns are left to the sweeper, dice that were
//! looked at are spent. Nothing here may say what the panic said to a client: that is for the log.
//!
//! [`caught`] runs one request's work; [`answer`] is what its client gets. To guard other work, run it through [`caught`].

use std::{any::Any, fmt, panic::AssertUnwindSafe};

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use futures_util::FutureExt;

use crate::{
    error::{Error, Problem},
    http::RequestId,
    limits::Rate,
    ops::metrics,
};

/// That work panicked; what it said is in the log.
#[derive(Debug)]
pub struct Panicked;

/// Does some work, and survives it. `what` names it in the log.
///
/// # Errors
/// [`Panicked`].
pub async fn caught<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Panicked> {
    // Whatever the work held is dropped and never looked at again.
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| {
        count(what, &*payload);
        Panicked
    })
}

/// Counts and logs a panic.
pub fn count(what: &str, payload: &(dyn Any + Send)) {
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    metrics::PANICS.inc();
    tracing::error!(what, said = said.unwrap_or("something that is no text"), "a panic was caught");
}

/// What the client of a request that panicked is told, headers and all: its frame is gone with it.
#[must_use]
pub fn answer(id: &RequestId) -> actix_web::Error {
    Fault(id.to_string()).into()
}

#[derive(Debug)]
struct Fault(String);

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
        HttpResponse::InternalServerError()
            .content_type("application/problem+json")
            .insert_header(("x-request-id", self.0.as_str()))
            .insert_header(("x-content-type-options", "nosniff"))
            .insert_header(("cache-control", "private, no-store"))
            .insert_header(("ratelimit-policy", policy))
            .insert_header(("ratelimit", state))
            .body(serde_json::to_vec(&Problem::of(&error, &self.0)).unwrap_or_default())
    }
}
