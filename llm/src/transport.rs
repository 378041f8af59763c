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
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower_service::Service;

use super::decode::{Decoded, decode, describe_error};
use super::endpoint::{CallOptions, Secret};
use super::error::{LlmError, TimeoutPhase, UnavailableKind, clean_detail};
use super::guard::EndpointRefused;
use super::retry::{self, Failure};
use super::stream::{Events, Growing, Sink};

/// The most bytes of an error's body that are read, and for how long.
const ERROR_BODY_BYTES_MAX: usize = 8 * 1024;
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);
/// How long to wait for the end of a streamed body after its last event.
const BODY_END_WAIT: Duration = Duration::from_millis(20);
const EVENT_STREAM: &str = "text/event-stream";

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
    pub(super) slot: Mutex<Option<(Decoded, u32)>>,
}

impl Transport {
    /// The decoded reply and the number of attempts, once the service has answered.
    pub(super) fn take(&self) -> Option<(Decoded, u32)> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
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
        let accepted = if self.sink.is_some() { EVENT_STREAM } else { "application/json" };
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
            return Err(self.refusal(response).await);
        }
        match &self.sink {
            Some(sink) if is_stream(&response) => return self.read_stream(response, first_token_by, sink).await,
            // An endpoint that cannot stream sends the whole reply at once.
            _ => {}
        }
        let body = self.read(response, first_token_by).await?;
        decode(&body, self.secret.as_ref())
    }

    /// Reads a reply up to the limit. Its first piece must come in time.
    async fn read(&self, mut response: Response, first_token_by: Instant) -> Result<Bytes, Failure> {
        let limit_bytes = self.reply_bytes_max;
        let too_large = || Failure::lasting(LlmError::TooLarge { limit_bytes });
        let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
        if announced > limit_bytes {
            return Err(too_large());
        }
        let first = timeout_at(first_token_by, response.chunk())
            .await
            .map_err(|_| Failure::lasting(LlmError::Timeout { phase: TimeoutPhase::FirstToken }))?
            .map_err(|error| self.classify(&error))?
            .unwrap_or_default();
        if first.len() > limit_bytes {
            return Err(too_large());
        }
        let Some(second) = response.chunk().await.map_err(|error| self.classify(&error))? else {
            return Ok(first);
        };
        let mut body = Vec::with_capacity(announced.max(first.len() + second.len()));
        body.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if body.len() + chunk.len() > limit_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
            next = response.chunk().await.map_err(|error| self.classify(&error))?;
        }
        Ok(body.into())
    }

    /// Reads a streamed reply and passes on its text as it comes. Once text was passed on, it cannot be withdrawn, so no further
    /// attempt is made.
    async fn read_stream(
        &self,
        mut response: Response,
        first_token_by: Instant,
        sink: &Sink,
    ) -> Result<Decoded, Failure> {
        let limit_bytes = self.reply_bytes_max;
        let (mut events, mut reply) = (Events::default(), Growing::default());
        let (mut read_bytes, mut told) = (0, false);
        let (mut by, mut phase) = (first_token_by, TimeoutPhase::FirstToken);
        let final_if = |told: bool, failure: Failure| if told { Failure::lasting(failure.error) } else { failure };
        loop {
            let chunk = timeout_at(by, response.chunk())
                .await
                .map_err(|_| Failure::lasting(LlmError::Timeout { phase }))?
                .map_err(|error| final_if(told, self.classify(&error)))?;
            let Some(chunk) = chunk else { break };
            read_bytes += chunk.len();
            if read_bytes > limit_bytes {
                return Err(Failure::lasting(LlmError::TooLarge { limit_bytes }));
            }
            events.push(&chunk);
            while let Some(data) = events.next() {
                let text = reply.take(&data, self.secret.as_ref()).map_err(|failure| final_if(told, failure))?;
                if !text.is_empty() {
                    told = true;
                    sink.tell(&text);
                }
            }
            if reply.is_done() {
                // The end of the body follows at once. Reading it frees the connection for another call.
                let _ = timeout(BODY_END_WAIT, response.chunk()).await;
                break;
            }
            (by, phase) = (Instant::now() + self.idle_timeout, TimeoutPhase::Idle);
        }
        reply.finish().map_err(|failure| final_if(told, failure))
    }

    /// Turns an answer that is not 200 into a failure.
    async fn refusal(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let retry_after = retry::retry_after(response.headers());
        let body = read_head(response).await;
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

fn is_stream(response: &Response) -> bool {
    let named = response.headers().get(CONTENT_TYPE).and_then(|name| name.to_str().ok());
    named.is_some_and(|name| name.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM))
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
