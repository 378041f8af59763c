//! The outermost middleware: request ids, problem bodies, common headers, metrics, the access log.

use std::{
    borrow::Cow,
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method, StatusCode,
        header::{self, HeaderMap},
    },
    middleware::Next,
    web,
};
use tokio::time::Instant;

use super::{
    cors, held,
    router::{Pattern, routed},
};
use crate::{
    admission::{self, Place},
    caller::{
        Caller,
        access::{self, Access},
    },
    connections::{self, Line, Work},
    panics::{self, Panicked},
    state::Edge,
};
use base::request_id::RequestId;
use base::{
    error::{Code, Error, Problem},
    metrics,
    rate::Rate,
};

/// Wraps one request.
///
/// # Errors
/// None of its own; those of the inner service.
#[tracing::instrument(level = "debug", name = "request", skip_all, fields(method = %request.method(), request_id))]
pub async fn observe<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let started = Instant::now();
    let id = RequestId::from_header(request.headers().get("x-request-id").map(header::HeaderValue::as_bytes));
    tracing::Span::current().record("request_id", tracing::field::display(&id));
    request.extensions_mut().insert(id.clone());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let page = Page::of(&request).map(Box::new);
    let place = request.extensions_mut().remove::<Place>().unwrap_or_default();
    let work = begun(&mut request);
    if method == Method::HEAD {
        as_get(&mut request);
    }
    let answered = panics::caught("a request", async {
        match page.as_ref().is_some_and(|page| page.asked.is_preflight) {
            true => Ok(request.into_response(HttpResponse::NoContent().finish())),
            false => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
        }
    });
    let mut response = match admission::at(place, answered).await {
        Ok(answered) => answered?,
        Err(Panicked) => {
            held::released().await;
            let route = access::fitting(routed(&method).as_str(), uri.path()).map_or("unmatched", |access| access.path);
            count(&method, route, StatusCode::INTERNAL_SERVER_ERROR, started);
            tracing::error!(request_id = %id, method = %method, route, "a request panicked");
            let mut headers = HeaderMap::new();
            if let Some(page) = page {
                page.let_read(&mut headers, None);
            }
            return Err(panics::answer(&id, headers));
        }
    };
    // An error could reveal dice. Nobody may see it before these dice are recorded as spent.
    held::released().await;
    if response.response().error().is_some() || response.status().as_u16() == 404 {
        response = with_problem(response, &id);
    }
    finish_headers(&mut response, &id, page.as_deref());
    record(&response, &method, &id, started);
    Ok(response.map_body(|_, body| match method == Method::HEAD {
        true => BoxBody::new(Unsent(body.size())),
        false => connections::until_it_ends(body, work),
    }))
}

/// A page of another origin, or of ours, that sent the request.
struct Page {
    app: web::Data<Edge>,
    asked: cors::Asked,
}

impl Page {
    fn of(request: &ServiceRequest) -> Option<Self> {
        let asked = cors::Asked::by(request.method(), request.uri(), request.headers())?;
        Some(Self { app: request.app_data::<web::Data<Edge>>()?.clone(), asked })
    }

    fn let_read(&self, headers: &mut HeaderMap, caller: Option<&Caller>) {
        cors::expose(headers, &self.asked, caller, &self.app.origins);
    }
}

/// Makes a request with HEAD one with GET: it is answered in the same way, but for the body. It never becomes a WebSocket, which has no
/// answer without one.
fn as_get(request: &mut ServiceRequest) {
    let head = request.head_mut();
    head.method = Method::GET;
    head.headers_mut().remove(header::UPGRADE);
}

/// The body of an answer to HEAD: as long as GET's, and not sent.
struct Unsent(BodySize);

impl MessageBody for Unsent {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<web::Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}

/// Registers the request as work of its connection. Its body must arrive in time, whoever reads it.
fn begun(request: &mut ServiceRequest) -> Option<Work> {
    let work = request.conn_data::<Rc<Line>>().map(Line::work)?;
    if has_body(request.headers())
        && let Some(app) = request.app_data::<web::Data<Edge>>()
    {
        let within = app.connection_limits.body_timeout;
        let payload = request.take_payload();
        request.set_payload(work.timely(payload, within));
    }
    Some(work)
}

/// Whether a request announces a body.
pub(super) fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING)
}

/// The rate limit that rejected a request.
struct Refused(Rate);

/// Gives an error its problem body and the headers of its code.
fn with_problem(response: ServiceResponse, id: &RequestId) -> ServiceResponse {
    let status = response.status().as_u16();
    let other;
    let error = match response.response().error() {
        Some(e) => match e.as_error::<Error>() {
            Some(ours) => ours,
            None => {
                other = match status {
                    404 => Error::not_found("page"),
                    405 => Error::new(Code::MethodNotAllowed, "This path does not accept this method."),
                    400..500 => Error::new(Code::BadRequest, "The request is malformed."),
                    _ => Error::internal(e.to_string()),
                };
                &other
            }
        },
        None => return response,
    };
    if error.code.status() >= 500 {
        let (code, cause) = (error.code.as_str(), error.cause().map(ToString::to_string));
        match error.code {
            Code::Internal => tracing::error!(request_id = %id, code, detail = %error.detail, cause, "request failed"),
            // Caused by something else, or returned on purpose.
            _ => tracing::warn!(request_id = %id, code, detail = %error.detail, cause, "request failed"),
        }
    }
    if let Some(limit) = error.limit {
        response.request().extensions_mut().insert(Refused(limit));
    }
    let answer = problem(error, id);
    response.into_response(answer)
}

/// The response for an error.
pub(super) fn problem(error: &Error, id: &RequestId) -> HttpResponse {
    let body = serde_json::to_vec(&Problem::of(error, &id.to_string())).unwrap_or_default();
    let mut answer = HttpResponse::build(StatusCode::from_u16(error.code.status()).unwrap_or_default());
    answer.content_type("application/problem+json");
    if let Some(seconds) = error.retry_after_seconds {
        answer.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    if let Some(allow) = &error.allow {
        answer.insert_header((header::ALLOW, allow.as_str()));
    }
    if error.code == Code::Unauthenticated {
        answer.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"tavernkeep\", error=\"invalid_token\""));
    }
    if error.code == Code::UnsupportedMediaType {
        answer.insert_header(("accept-patch", "application/merge-patch+json, application/json"));
    }
    answer.body(body)
}

fn finish_headers(response: &mut ServiceResponse, id: &RequestId, page: Option<&Page>) {
    let rate = response.request().extensions().get::<Rate>().copied().unwrap_or_else(|| Rate::unlimited("requests"));
    let refused = response.request().extensions().get::<Refused>().map(|Refused(limit)| *limit);
    let caller = page.and_then(|_| response.request().extensions().get::<Caller>().cloned());
    let is_api = response.request().path().starts_with("/v1");
    let headers = response.headers_mut();
    // What rejected the request is newer than what was counted when it came.
    let rate = refused.filter(|limit| limit.policy == rate.policy).unwrap_or(rate);
    let (mut policy, mut state) = rate.headers();
    if let Some(limit) = refused.filter(|limit| limit.policy != rate.policy) {
        let (its_policy, its_state) = limit.headers();
        policy.push_str(&format!(", {its_policy}"));
        state.push_str(&format!(", {its_state}"));
    }
    for (name, value) in [("x-request-id", id.to_string()), ("ratelimit-policy", policy), ("ratelimit", state)] {
        if let Ok(value) = header::HeaderValue::from_str(&value) {
            headers.insert(header::HeaderName::from_static(name), value);
        }
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    if is_api && !headers.contains_key(header::CACHE_CONTROL) {
        let value = if headers.contains_key(header::ETAG) { "private, no-cache" } else { "private, no-store" };
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static(value));
    }
    if let Some(page) = page {
        page.let_read(headers, caller.as_ref());
    }
}

/// Counts an answer in the metrics. Returns the method as metrics name it, and how long the answer took.
pub(crate) fn count<'m>(method: &'m Method, route: &str, status: StatusCode, started: Instant) -> (&'m str, f64) {
    let seconds = started.elapsed().as_secs_f64();
    let method = match method.as_str() {
        m @ ("GET" | "POST" | "PATCH" | "PUT" | "DELETE" | "OPTIONS" | "HEAD") => m,
        _ => "other",
    };
    metrics::REQUESTS.with_label_values(&[method, route, status.as_str()]).inc();
    metrics::REQUEST_SECONDS.with_label_values(&[route]).observe(seconds);
    (method, seconds)
}

/// The pattern of the request's path. The gate and the router have found most of them; actix finds the few others.
fn pattern(request: &HttpRequest) -> Cow<'static, str> {
    let extensions = request.extensions();
    if let Some(access) = extensions.get::<&'static Access>() {
        return Cow::Borrowed(access.path);
    }
    if let Some(Pattern(pattern)) = extensions.get() {
        return pattern.clone();
    }
    request.match_pattern().map_or(Cow::Borrowed("unmatched"), Cow::Owned)
}

fn record(response: &ServiceResponse, method: &Method, id: &RequestId, started: Instant) {
    let request = response.request();
    let route = pattern(request);
    let status = response.status();
    let (method, seconds) = count(method, &route, status, started);
    if status.as_u16() == 429 {
        metrics::RATE_LIMITED.inc();
    }
    let by = || request.extensions().get::<Caller>().map(|caller| caller.actor().signature());
    let by = if matches!(status.as_u16(), 401 | 403) { by() } else { None };
    note(id, method, &route, status, seconds * 1000.0, by);
}

/// Writes an answer to the access log. `by` names the caller who was refused.
pub(crate) fn note(id: &RequestId, method: &str, route: &str, status: StatusCode, ms: f64, by: Option<String>) {
    let code = status.as_u16();
    if matches!(code, 401 | 403) {
        return tracing::info!(request_id = %id, method, route, status = code, ms, by, "refused");
    }
    if status.is_success() && matches!(method, "GET" | "HEAD") {
        tracing::debug!(request_id = %id, method, route, status = code, ms, "answered");
    } else {
        tracing::info!(request_id = %id, method, route, status = code, ms, "answered");
    }
}
