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
    http::header::{self, HeaderName, HeaderValue},
};
use futures_util::{FutureExt, StreamExt, TryFutureExt};
use tokio::time::Instant;

use super::{
    body::announced,
    cors,
    observe::{count, has_body, problem},
};
use crate::{admission::Place, connections::Line, state::Edge};
use base::{
    error::{self, Error},
    rate::Rate,
    request_id::RequestId,
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
    match take_place(app, &request) {
        Ok(()) => inside.call(request).map_ok(Response::from).left_future(),
        Err(busy) => {
            refuse(refusal(app, &request, &id_of(&request), &busy), request, Instant::now()).map(Ok).right_future()
        }
    }
}

/// Gives a request its place, unless it has one already.
///
/// # Errors
/// `unavailable`.
pub fn take_place(app: &Edge, request: &Request) -> error::Result<()> {
    if request.extensions().contains::<Place>() {
        return Ok(());
    }
    let place = app.admission.enter(request.method(), request.path())?;
    request.extensions_mut().insert(place);
    Ok(())
}

/// Answers a rejected request, after its body.
async fn refuse(answer: Response<BoxBody>, mut request: Request, started: Instant) -> Response<BoxBody> {
    // A body that was not read to its end leaves the client owing the rest.
    let work = request.conn_data::<Rc<Line>>().map(Line::work);
    if has_body(request.headers())
        && let Some(work) = &work
    {
        let is_short = announced(request.headers()).is_some_and(|bytes| bytes <= BODY_BYTES_MAX);
        let mut body = work.timely(request.take_payload(), BODY_WAIT);
        if is_short {
            while matches!(body.next().await, Some(Ok(_))) {}
        }
    }
    count(request.method(), "refused", answer.status(), started);
    answer
}

/// The id of a request.
#[must_use]
pub fn id_of(request: &Request) -> RequestId {
    RequestId::from_header(request.headers().get("x-request-id").map(HeaderValue::as_bytes))
}

/// An answer that nothing but the door has seen, with the headers that every answer has.
pub fn refusal(app: &Edge, request: &Request, id: &RequestId, error: &Error) -> Response<BoxBody> {
    let mut answer: Response<BoxBody> = problem(error, id).into();
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if request.path().starts_with("/v1") {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    let (policy, state) = &*UNLIMITED;
    headers.insert(HeaderName::from_static("ratelimit-policy"), policy.clone());
    headers.insert(HeaderName::from_static("ratelimit"), state.clone());
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
    if let Some(asked) = cors::Asked::by(request.method(), request.path(), request.headers()) {
        cors::expose(headers, &asked, None, &app.origins);
    }
    answer
}
