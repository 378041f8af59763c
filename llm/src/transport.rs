//! The HTTP service below the library: makes attempts within limits of time and size.
//!
//! The library passes a factory that rebuilds the request from one serialised body, so every attempt sends the same bytes. The
//! service decodes the reply itself, puts it into a slot, and returns an empty answer to the library, because the library would
//! read the body without a limit and log what it cannot decode.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::middleware::HttpRequestFactory;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION};
use reqwest::{Client, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower_service::Service;

use super::decode::{Decoded, describe_error};
use super::documents::Documents;
use super::endpoint::{CallOptions, Secret};
use super::error::{LlmError, TimeoutPhase, UnavailableKind, clean_detail};
use super::growing::{Growing, Progress};
use super::guard::EndpointRefused;
use super::reply::Aside;
use super::retry::{self, Failure};
use super::sink::Sink;

/// The most bytes of an error's body that are read, and for how long.
const ERROR_BODY_BYTES_MAX: usize = 8 * 1024;
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);
/// How long to wait for the end of a streamed body after its last event.
const BODY_END_WAIT: Duration = Duration::from_millis(20);
/// How long to wait for the usage after a streamed reply has ended. Some endpoints leave the connection open.
const USAGE_WAIT: Duration = Duration::from_secs(1);

/// The data of one call, shared by the library's clones of the service.
pub(super) struct Transport {
    pub(super) http: Client,
    pub(super) deadline: Instant,
    pub(super) first_token_timeout: Duration,
    /// The longest pause within a stream.
    pub(super) idle_timeout: Duration,
    pub(super) reply_bytes_max: usize,
    pub(super) attempts_max: u32,
    /// Whether connection errors may be described. Tenants could use them to map the network.
    pub(super) trusted: bool,
    pub(super) options: Arc<CallOptions>,
    /// Removed from error texts. With `None`, no `Authorization` header is sent.
    pub(super) secret: Option<Secret>,
    /// Receives the text of a streamed reply.
    pub(super) sink: Option<Sink>,
    /// Whether tools were offered, so that calls written as text are calls.
    pub(super) offers_tools: bool,
    /// Whether the endpoint's replies are known to begin within a thought.
    pub(super) begins_in_thought: bool,
    pub(super) slot: Mutex<Option<(Decoded, u32)>>,
    /// The text of a 400 or 422.
    pub(super) refusal: Mutex<Option<String>>,
}

impl Transport {
    /// The decoded reply and the number of attempts, once the service has answered.
    pub(super) fn take(&self) -> Option<(Decoded, u32)> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The text of a 400 or 422, if the request was refused with one.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn run(&self, factory: HttpRequestFactory) -> Result<Response, LlmError> {
        let mut made = 0;
        loop {
            made += 1;
            let failure = match self.attempt(&factory).await {
                Ok(decoded) => {
                    *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((decoded, made));
                    return Ok(http::Response::new(Bytes::from_static(b"null")).into());
                }
                Err(failure) => failure,
            };
            let left = self.deadline.saturating_duration_since(Instant::now());
            let Some(pause) = retry::pause(&failure, made, self.attempts_max, left) else {
                return Err(failure.error);
            };
            tracing::debug!(
                attempt = made,
                failure = failure.error.metric_label(),
                ?pause,
                "trying a model call again"
            );
            sleep(pause).await;
        }
    }

    async fn attempt(&self, factory: &HttpRequestFactory) -> Result<Decoded, Failure> {
        let mut request = factory.build().await.map_err(|_| {
            Failure::lasting(LlmError::unavailable(UnavailableKind::Rejected, "the request could not be built"))
        })?;
        let headers = request.headers_mut();
        for (name, value) in &self.options.headers {
            headers.insert(name.clone(), value.clone());
        }
        let accepted = if self.sink.is_some() { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match headers.get_mut(AUTHORIZATION) {
            Some(bearer) if self.secret.is_some() => bearer.set_sensitive(true),
            // The library sends an empty bearer token if there is no key.
            _ => drop(headers.remove(AUTHORIZATION)),
        }
        let first_token_by = Instant::now() + self.first_token_timeout;
        let response = timeout_at(first_token_by, self.http.execute(request))
            .await
            .map_err(|_| Failure::lasting(LlmError::Timeout { phase: TimeoutPhase::FirstToken }))?
            .map_err(|error| self.classify(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        self.read(response, first_token_by).await
    }

    /// Reads a reply, whole or in pieces, and passes on its text as it comes. Once text was passed on, it cannot be withdrawn, so no
    /// further attempt is made. A reply that is complete stays so, however the body ends.
    async fn read(&self, mut response: Response, first_token_by: Instant) -> Result<Decoded, Failure> {
        let limit_bytes = self.reply_bytes_max;
        let too_large = || Failure::lasting(LlmError::TooLarge { limit_bytes });
        if usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX) > limit_bytes {
            return Err(too_large());
        }
        let (mut documents, mut reply) = (Documents::default(), Growing::default());
        let mut ear = Ear::new(self);
        let (mut read_bytes, mut ended_with) = (0, None);
        let (mut by, mut phase) = (first_token_by, TimeoutPhase::FirstToken);
        loop {
            let chunk = match timeout_at(by, response.chunk()).await {
                Err(_) | Ok(Err(_)) if reply.progress() != Progress::Begun => break,
                Err(_) => return Err(Failure::lasting(LlmError::Timeout { phase })),
                Ok(chunk) => chunk.map_err(|error| ear.final_if_told(self.classify(&error)))?,
            };
            let Some(chunk) = chunk else { break };
            read_bytes += chunk.len();
            if read_bytes > limit_bytes {
                return Err(too_large());
            }
            documents.push(&chunk);
            while let Some(part) = documents.next() {
                let text = reply.take(&part, self.secret.as_ref()).map_err(|failure| ear.final_if_told(failure))?;
                ear.hear(&text);
            }
            match reply.progress() {
                Progress::Done => {
                    // The end of the body follows at once. Reading it frees the connection for another call.
                    let _ = timeout(BODY_END_WAIT, response.chunk()).await;
                    break;
                }
                Progress::Ended if ended_with != Some(reply.documents()) => {
                    ended_with = Some(reply.documents());
                    by = Instant::now() + USAGE_WAIT;
                }
                Progress::Ended => {}
                Progress::Begun if self.sink.is_some() => {
                    (by, phase) = (Instant::now() + self.idle_timeout, TimeoutPhase::Idle);
                }
                // Whoever waits for a whole reply waits for as long as the call may take.
                Progress::Begun => (by, phase) = (self.deadline, TimeoutPhase::Total),
            }
        }
        if let Some(part) = documents.rest() {
            let text = reply.take_rest(&part, self.secret.as_ref()).map_err(|failure| ear.final_if_told(failure))?;
            ear.hear(&text);
        }
        let decoded = reply.finish().map_err(|failure| ear.final_if_told(failure))?;
        Ok(ear.end(decoded))
    }

    /// Turns an answer that is not 200 into a failure.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let retry_after = retry::retry_after(response.headers());
        let body = read_head(response).await;
        if matches!(status, 400 | 422) {
            let text = String::from_utf8_lossy(&body).into_owned();
            *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        let (text, out_of_quota) = describe_error(&body);
        let (kind, detail) = match status {
            429 => (UnavailableKind::RateLimited, clean_detail(&text, self.secret.as_ref())),
            408 | 500..=599 => (UnavailableKind::Server, clean_detail(&text, self.secret.as_ref())),
            // In these, providers quote the key or parts of it.
            401 | 403 => (UnavailableKind::Rejected, "the key is missing, wrong or lacks a permission".to_owned()),
            300..=399 => {
                (UnavailableKind::Rejected, "it answers with a redirect, and redirects are not followed".to_owned())
            }
            _ => (UnavailableKind::Rejected, clean_detail(&text, self.secret.as_ref())),
        };
        let error = LlmError::Unavailable { kind, status: Some(status), detail, retry_after };
        Failure { error, transient: retry::is_transient(status) && !out_of_quota }
    }

    fn classify(&self, error: &reqwest::Error) -> Failure {
        if let Some(refused) = causes(error).find_map(|cause| cause.downcast_ref::<EndpointRefused>()) {
            return Failure::lasting(LlmError::Refused(refused.clone()));
        }
        if error.is_connect() && error.is_timeout() {
            return Failure::transient(LlmError::Timeout { phase: TimeoutPhase::Connect });
        }
        let kind = if error.is_connect() { UnavailableKind::Connect } else { UnavailableKind::Dropped };
        let detail = match causes(error).last() {
            Some(root) if self.trusted => clean_detail(&root.to_string(), self.secret.as_ref()),
            _ => String::new(),
        };
        Failure::transient(LlmError::unavailable(kind, detail))
    }
}

/// Hears a reply's text, passes on the speech, and keeps the rest apart.
struct Ear<'a> {
    sink: Option<&'a Sink>,
    aside: Aside,
    heard_bytes: usize,
    has_told: bool,
}

impl<'a> Ear<'a> {
    fn new(transport: &'a Transport) -> Self {
        let aside = Aside::new(transport.offers_tools, transport.begins_in_thought);
        Self { sink: transport.sink.as_ref(), aside, heard_bytes: 0, has_told: false }
    }

    /// Hears a piece.
    fn hear(&mut self, text: &str) {
        if !text.is_empty() {
            self.heard_bytes += text.len();
            let told = self.aside.push(text);
            self.tell(&told);
        }
    }

    fn tell(&mut self, text: &str) {
        if let Some(sink) = self.sink.filter(|_| !text.is_empty()) {
            self.has_told = true;
            sink.tell(text);
        }
    }

    /// What was told cannot be withdrawn, so no further attempt is made after it.
    fn final_if_told(&self, failure: Failure) -> Failure {
        if self.has_told { Failure::lasting(failure.error) } else { failure }
    }

    /// The reply with what was heard.
    fn end(mut self, mut decoded: Decoded) -> Decoded {
        if self.heard_bytes > 0 {
            // Half a character at the end was held back.
            let rest = decoded.text.split_off(self.heard_bytes.min(decoded.text.len()));
            self.hear(&rest);
            let rest = self.aside.finish();
            self.tell(&rest);
        } else {
            // A whole reply is not told in pieces.
            self.aside.push(&decoded.text);
            self.aside.finish();
        }
        decoded.take_aside(&self.aside);
        decoded
    }
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// The beginning of an error's body, as much as comes soon. Never fails.
async fn read_head(mut response: Response) -> Vec<u8> {
    let mut head = Vec::new();
    let until = Instant::now() + ERROR_BODY_WAIT;
    while head.len() < ERROR_BODY_BYTES_MAX {
        match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(chunk))) => head.extend_from_slice(&chunk[..chunk.len().min(ERROR_BODY_BYTES_MAX)]),
            _ => break,
        }
    }
    head
}

/// [`Transport`] in the form that the library needs.
#[derive(Clone)]
pub(super) struct TransportService(pub(super) Arc<Transport>);

impl Service<HttpRequestFactory> for TransportService {
    type Response = Response;
    type Error = LlmError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, LlmError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LlmError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let transport = Arc::clone(&self.0);
        Box::pin(async move { transport.run(factory).await })
    }
}
