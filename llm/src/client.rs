//! [`LlmClient`]: sends one chat request and turns every failure into an [`LlmError`].

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::traits::RequestOptionsBuilder;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::breaker::{self, BreakerCounts, BreakerSnapshot, Breakers, Permit};
use super::endpoint::{Endpoint, Secret, base_of};
use super::error::{LlmError, TimeoutPhase, UnavailableKind, clean_detail};
use super::guard::{self, EndpointRefused, Guard};
use super::http_clients::HttpClients;
use super::listing;
use super::request::{ChatRequest, Payload};
use super::settings::{self, LlmSettings};
use super::transport::{Transport, TransportService};
use super::usage::Usage;
use crate::decode::WireToolCall;

/// A model's answer.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    /// The text. Empty if the model only made calls. Untrusted, and as long as the reply limit allows: see [`super::reply`].
    pub text: String,
    /// The proposed calls, in the model's order.
    pub tool_calls: Vec<WireToolCall>,
    /// Why the model stopped, in the provider's words (`stop`, `length`, `tool_calls`, …).
    pub finish_reason: Option<String>,
    /// The tokens used.
    pub usage: Usage,
    /// Whether the tokens are our estimate, because the provider said nothing of them.
    pub is_usage_estimated: bool,
    /// What the model thought before it answered, if the provider tells. Never part of the text. Untrusted.
    pub reasoning: String,
    /// The model that answered according to the provider, or else the requested one.
    pub model: String,
    /// How many attempts were made, including the last.
    pub attempts: u32,
    /// From the call of [`LlmClient::complete`] to its return.
    pub latency: Duration,
}

impl Completion {
    /// Whether the model had to stop writing because of a limit.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.finish_reason.as_deref() == Some("length")
    }
}

/// A client for all endpoints. Cheap to clone; all clones share connections and breakers.
#[derive(Clone)]
pub struct LlmClient(Arc<Inner>);

struct Inner {
    settings: LlmSettings,
    clients: HttpClients,
    guard: Arc<Guard>,
    breakers: Arc<Breakers>,
    template: OpenAIConfig,
}

impl fmt::Debug for LlmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmClient").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl LlmClient {
    /// Builds the pooled HTTP clients; call it once per process.
    ///
    /// # Errors
    /// [`LlmError::Unavailable`] when TLS cannot be set up at all.
    pub fn new(settings: LlmSettings) -> Result<Self, LlmError> {
        let settings = settings.bounded();
        let guard = Arc::new(Guard::new(settings.allowed_hosts.clone(), settings.allow_private));
        let clients = HttpClients::build(&settings, &guard)?;
        let breakers = Arc::new(Breakers::new(settings.breaker_failures, settings.breaker_open));
        // Overwrites everything that the library reads from the environment by default. An organisation or key from there must not
        // reach an endpoint that somebody else configured.
        let template = OpenAIConfig::new().with_org_id("").with_project_id("").with_api_key("").with_api_base("");
        Ok(Self(Arc::new(Inner { settings, clients, guard, breakers, template })))
    }

    /// Sends one request and waits for the whole answer, at most the endpoint's total timeout, or else
    /// [`LlmSettings::total_timeout`].
    ///
    /// # Errors
    /// See [`LlmError`]. Dropping the future, or `cancel`, closes the connection.
    pub async fn complete(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Completion, LlmError> {
        let most = endpoint.options.total_timeout.unwrap_or(self.0.settings.total_timeout);
        self.complete_within(endpoint, request, cancel, most).await
    }

    /// The body that [`LlmClient::complete`] would send.
    ///
    /// # Errors
    /// An error of the JSON writer.
    pub fn body(&self, endpoint: &Endpoint, request: &ChatRequest<'_>) -> serde_json::Result<String> {
        let (options, output_tokens_max) = (&*endpoint.options, self.0.settings.output_tokens_max);
        serde_json::to_string_pretty(&Payload { model: &endpoint.model, options, output_tokens_max, request })
    }

    /// Like [`LlmClient::complete`], with another limit for the whole call.
    ///
    /// # Errors
    /// The errors of [`LlmClient::complete`].
    pub async fn complete_within(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        cancel: &CancellationToken,
        total_timeout: Duration,
    ) -> Result<Completion, LlmError> {
        let started = Instant::now();
        if cancel.is_cancelled() {
            return Err(LlmError::Cancelled);
        }
        self.check(endpoint)?;
        let permit = self.0.breakers.enter(endpoint)?;
        let deadline = started + total_timeout.min(settings::DURATION_MAX);
        let call = timeout_at(deadline, self.call(endpoint, request, &permit, deadline));
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            outcome = call => outcome.unwrap_or(Err(LlmError::Timeout { phase: TimeoutPhase::Total })),
        };
        permit.settle(&endpoint.base_url, &outcome);
        let values = endpoint.options.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        outcome
            .map_err(|error| error.without(values))
            .map(|completion| Completion { latency: started.elapsed(), ..completion })
    }

    /// The names of the models that an endpoint offers, sorted. Asked once, within [`LlmSettings::first_token_timeout`].
    ///
    /// # Errors
    /// See [`LlmError`].
    pub async fn list_models(&self, endpoint: &Endpoint) -> Result<Vec<String>, LlmError> {
        self.check(endpoint)?;
        listing::list(self.0.clients.of(endpoint), endpoint, self.0.settings.first_token_timeout).await
    }

    /// Checks an address that a tenant wants to use, as far as that is possible without a DNS look-up. Returns the base URL.
    ///
    /// # Errors
    /// [`EndpointRefused`] says what is wrong. The tenant may see it.
    pub fn check_endpoint(&self, url: &str) -> Result<Url, EndpointRefused> {
        let url = guard::parse_url(url)?;
        self.0.guard.check(&url)?;
        Ok(base_of(url))
    }

    /// All endpoints whose last call failed, with the state of their breakers.
    pub fn breaker_states(&self) -> Vec<BreakerSnapshot> {
        self.0.breakers.snapshot()
    }

    /// The number of endpoints in each state, for metrics. Host names come from tenants and must not become labels.
    pub fn breaker_counts(&self) -> BreakerCounts {
        breaker::count(&self.breaker_states())
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointRefused> {
        if endpoint.trusted { guard::check_form(&endpoint.base_url) } else { self.0.guard.check(&endpoint.base_url) }
    }

    async fn call(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        permit: &Permit,
        deadline: Instant,
    ) -> Result<Completion, LlmError> {
        let Inner { settings, clients, template, .. } = &*self.0;
        let http = clients.of(endpoint);
        let transport = Arc::new(Transport {
            http: http.clone(),
            deadline,
            idle_timeout: settings.first_token_timeout,
            first_token_timeout: endpoint.options.first_token_timeout.unwrap_or(settings.first_token_timeout),
            reply_bytes_max: settings.reply_bytes_max,
            attempts_max: if permit.is_probe() { 1 } else { settings.retries.saturating_add(1) },
            trusted: endpoint.trusted,
            options: Arc::clone(&endpoint.options),
            secret: endpoint.key().cloned(),
            sink: request.sink.cloned(),
            slot: Mutex::default(),
        });
        let client = Client::build(http.clone(), endpoint.configure(template)?)
            .with_http_service(TransportService(Arc::clone(&transport)));
        let mut chat = client.chat();
        if let Some(query) = endpoint.base_url.query() {
            chat = chat.path(format!("/chat/completions?{query}")).map_err(|error| unwrap_error(error, None))?;
        }
        let options = &endpoint.options;
        let payload =
            Payload { model: &endpoint.model, options, output_tokens_max: settings.output_tokens_max, request };
        let () = chat.create_byot(&payload).await.map_err(|error| unwrap_error(error, endpoint.key()))?;
        let (mut decoded, attempts) =
            transport.take().ok_or_else(|| LlmError::unavailable(UnavailableKind::Dropped, "the reply was lost"))?;
        let is_usage_estimated = request.sink.is_some() && decoded.usage.total_tokens == 0;
        if is_usage_estimated {
            let written =
                decoded.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>() + decoded.text.len();
            decoded.usage = Usage::estimated(request.content_bytes(), written);
        }
        Ok(Completion {
            text: decoded.text,
            tool_calls: decoded.tool_calls,
            finish_reason: decoded.finish_reason,
            usage: decoded.usage,
            is_usage_estimated,
            reasoning: decoded.reasoning,
            model: decoded.model.unwrap_or_else(|| endpoint.model.clone()),
            attempts,
            latency: Duration::ZERO,
        })
    }
}

/// Extracts our own error from the library's. The library's other errors only arise while a request is built.
fn unwrap_error(error: OpenAIError, secret: Option<&Secret>) -> LlmError {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<LlmError>() {
            Ok(ours) => *ours,
            Err(other) => LlmError::unavailable(UnavailableKind::Rejected, clean_detail(&other.to_string(), secret)),
        },
        other => LlmError::unavailable(UnavailableKind::Rejected, clean_detail(&other.to_string(), secret)),
    }
}
