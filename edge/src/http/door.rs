//! The door: a request that finds no free place is rejected before anything else is done for it.
//!
//! The door stands in front of the routes and all middleware. So a server under far too much load spends its time on
//! the requests that it has begun. An accepted request carries its [`crate::admission::Place`] to [`super::observe`].

use std::{rc::Rc, sync::LazyLock, time::Duration};

use actix_http::{ConnectionType, HttpMessage, Request, Response};
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
use crate::{admission::Place, caller::Caller, connections::Line, state::Edge};
use base::{
    error::{self, Error},
    rate::Rate,
    request_id::RequestId,
};

/// We read the body of a rejected request up to this size and for this long; otherwise its connection would be lost.
const BODY_BYTES_MAX: usize = 64 * 1024;
const BODY_WAIT: Duration = Duration::from_millis(20);

/// The rate limit headers for a caller whom the server has not identified yet.
static UNLIMITED: LazyLock<(HeaderValue, HeaderValue)> = LazyLock::new(|| in_headers(&Rate::unlimited("requests")));

fn in_headers(rate: &Rate) -> (HeaderValue, HeaderValue) {
    let (policy, state) = rate.headers();
    let value = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
    (value(policy), value(state))
}

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
            let answer = Refusal::from(busy).answer(app, &request, &id_of(&request));
            refuse(answer, request, Instant::now()).map(Ok).right_future()
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

/// Why a request is answered before it comes to its route.
pub struct Refusal {
    pub error: Error,
    /// None: nobody counted the request.
    pub rate: Option<Rate>,
    pub caller: Option<Caller>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, rate: None, caller: None }
    }
}

impl Refusal {
    /// The answer, with the headers that every answer has. The connection ends after it if the body was not read.
    pub fn answer(&self, app: &Edge, request: &Request, id: &RequestId) -> Response<BoxBody> {
        let mut answer: Response<BoxBody> = problem(&self.error, id).into();
        if request.head().expect() {
            answer.head_mut().set_connection_type(ConnectionType::Close);
        }
        let headers = answer.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if request.path().starts_with("/v1") {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        }
        let (policy, state) = self.rate.as_ref().map_or_else(|| UNLIMITED.clone(), in_headers);
        headers.insert(HeaderName::from_static("ratelimit-policy"), policy);
        headers.insert(HeaderName::from_static("ratelimit"), state);
        if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
            headers.insert(HeaderName::from_static("x-request-id"), id);
        }
        if let Some(asked) = cors::Asked::by(request.method(), request.uri(), request.headers()) {
            cors::expose(headers, &asked, self.caller.as_ref(), &app.origins);
        }
        answer
    }
}
