//! The door: a request that finds no free place is rejected before anything else is done for it.
//!
//! The door stands in front of the routes and all middleware. So a server under far too much load spends its time on
//! the requests that it has begun. An accepted request carries its [`crate::admission::Place`] to [`super::observe`].

use std::{rc::Rc, sync::LazyLock, time::Duration};

use actix_http::{HttpMessage, Request, Response};
use actix_service::Service;
use actix_web::{
    body::BoxBody,
    dev::ServiceResponse,
    http::{
        StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
};
use futures_util::{FutureExt, StreamExt, TryFutureExt};
use tokio::time::Instant;

use super::observe::{count, has_body};
use crate::{connections::Line, state::Edge};
use base::request_id::RequestId;
use base::{
    error::{Error, Problem},
    rate::Rate,
};

/// We read the body of a rejected request up to this size and for this long; otherwise its connection would be lost.
const BODY_BYTES_MAX: usize = 64 * 1024;
const BODY_WAIT: Duration = Duration::from_millis(20);

/// The rate limit headers for a caller whom the server has not identified yet.
static UNLIMITED: LazyLock<(HeaderValue, HeaderValue)> = LazyLock::new(|| {
    let (policy, state) = Rate::unlimited("requests").headers();
    let value = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
    (value(policy), value(state))
});

/// Lets a request in or rejects it. An open stream holds the space of this future to its end, so it is kept small.
pub fn enter<S>(
    app: &Edge,
    request: Request,
    inside: &S,
) -> impl Future<Output = Result<Response<BoxBody>, S::Error>> + use<S>
where
    S: Service<Request, Response = ServiceResponse<BoxBody>>,
{
    match app.admission.enter(request.method(), request.path()) {
        Ok(place) => {
            request.extensions_mut().insert(place);
            inside.call(request).map_ok(Response::from).left_future()
        }
        Err(busy) => refuse(request, busy, Instant::now()).map(Ok).right_future(),
    }
}

/// The answer to a rejected request.
async fn refuse(mut request: Request, busy: Error, started: Instant) -> Response<BoxBody> {
    let id = RequestId::from_header(request.headers().get("x-request-id").map(HeaderValue::as_bytes));
    // A body that was not read to its end leaves the client owing the rest.
    let work = request.conn_data::<Rc<Line>>().map(Line::work);
    if has_body(request.headers())
        && let Some(work) = &work
    {
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
        let mut body = work.timely(request.take_payload(), BODY_WAIT);
        if length.is_some_and(|bytes| bytes <= BODY_BYTES_MAX) {
            while matches!(body.next().await, Some(Ok(_))) {}
        }
    }
    let status = StatusCode::from_u16(busy.code.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    count(request.method(), "refused", status, started);
    let body = serde_json::to_vec(&Problem::of(&busy, &id.to_string())).unwrap_or_default();
    let mut answer = Response::with_body(status, BoxBody::new(body));
    headers(answer.headers_mut(), &busy, &id, request.path());
    answer
}

/// Sets the headers that every answer has, with the values for an unidentified caller.
fn headers(headers: &mut HeaderMap, busy: &Error, id: &RequestId, path: &str) {
    let mut give = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    give(header::CONTENT_TYPE, "application/problem+json");
    give(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if path.starts_with("/v1") {
        give(header::CACHE_CONTROL, "private, no-store");
    }
    let (policy, state) = &*UNLIMITED;
    headers.insert(HeaderName::from_static("ratelimit-policy"), policy.clone());
    headers.insert(HeaderName::from_static("ratelimit"), state.clone());
    if let Some(seconds) = busy.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
}
