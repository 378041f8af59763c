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
use super::completion::Completion;
use super::echo::Origin;
use super::endpoint::{Endpoint, Secret, base_of};
use super::error::{LlmError, TimeoutPhase, UnavailableKind, clean_detail};
use super::guard::{self, EndpointRefused, Guard};
use super::habits::{self, Habits, Known};
use super::http_clients::HttpClients;
use super::listing;
use super::request::{ChatRequest, Payload};
use super::settings::{self, LlmSettings};
use super::transport::{Transport, TransportService};
use super::window::Window;

/// A client for all endpoints. Cheap to clone; all clones share connections and breakers.
#[derive(Clone)]
pub struct LlmClient(Arc<Inner>);

struct Inner {
    settings: LlmSettings,
    clients: HttpClients,
    guard: Arc<Guard>,
    breakers: Arc<Breakers>,
    known: Known,
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
        Ok(Self(Arc::new(Inner { settings, clients, guard, breakers, known: Known::default(), template })))
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

    /// The context window of an endpoint's model. None if its size is unknown.
    #[must_use]
    pub fn window(&self, endpoint: &Endpoint) -> Option<Window> {
        Window::of(&endpoint.options, self.0.settings.output_tokens_max)
    }

    /// The body that [`LlmClient::complete`] would send.
    ///
    /// # Errors
    /// An error of the JSON writer.
    pub fn body(&self, endpoint: &Endpoint, request: &ChatRequest<'_>) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&self.payload(endpoint, request, &self.0.known.of(Origin::of(endpoint))))
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

    /// Forgets what is known of an endpoint and model, so that everything is tried again.
    pub fn forget(&self, endpoint: &Endpoint) {
        self.0.known.forget(Origin::of(endpoint));
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

    fn payload<'a>(&self, endpoint: &'a Endpoint, request: &'a ChatRequest<'a>, habits: &'a Habits) -> Payload<'a> {
        Payload {
            model: &endpoint.model,
            options: &endpoint.options,
            output_tokens_max: self.0.settings.output_tokens_max,
            request,
            origin: Origin::of(endpoint),
            habits,
        }
    }

    /// Asks, and asks again without optional members if the endpoint refuses the request because of them.
    async fn call(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        permit: &Permit,
        deadline: Instant,
    ) -> Result<Completion, LlmError> {
        let origin = Origin::of(endpoint);
        let mut habits = self.0.known.of(origin);
        let mut made = 0;
        loop {
            let payload = self.payload(endpoint, request, &habits);
            let (outcome, refusal) = self.call_once(endpoint, &payload, permit, deadline).await;
            let more = match (&outcome, refusal) {
                (Err(_), Some(text)) => refused_by(&text, &payload, made),
                _ => None,
            };
            match (outcome, more) {
                (Err(_), Some(more)) => {
                    made += 1;
                    habits = more;
                }
                (Ok(completion), _) => {
                    let has_text = completion.begins_in_thought || !completion.text.is_empty();
                    let was_held_back = has_text && (completion.begins_in_thought || habits.begins_in_thought());
                    if made > 0 || was_held_back {
                        self.0.known.learn(origin, |known| {
                            known.refuse_as(&habits);
                            if was_held_back {
                                known.hear(completion.begins_in_thought);
                            }
                        });
                    }
                    return Ok(Completion { attempts: completion.attempts + made, ..completion });
                }
                (Err(error), None) => return Err(error),
            }
        }
    }

    /// Asks once. Also returns the endpoint's words if it refuses the request.
    async fn call_once(
        &self,
        endpoint: &Endpoint,
        payload: &Payload<'_>,
        permit: &Permit,
        deadline: Instant,
    ) -> (Result<Completion, LlmError>, Option<String>) {
        let transport = self.transport(endpoint, payload, permit, deadline);
        let outcome = self.send(endpoint, payload, &transport).await;
        (outcome, transport.refusal())
    }

    fn transport(
        &self,
        endpoint: &Endpoint,
        payload: &Payload<'_>,
        permit: &Permit,
        deadline: Instant,
    ) -> Arc<Transport> {
        let Inner { settings, clients, .. } = &*self.0;
        Arc::new(Transport {
            http: clients.of(endpoint).clone(),
            deadline,
            idle_timeout: settings.first_token_timeout,
            first_token_timeout: endpoint.options.first_token_timeout.unwrap_or(settings.first_token_timeout),
            reply_bytes_max: settings.reply_bytes_max,
            attempts_max: if permit.is_probe() { 1 } else { settings.retries.saturating_add(1) },
            trusted: endpoint.trusted,
            options: Arc::clone(&endpoint.options),
            secret: endpoint.key().cloned(),
            sink: payload.request.sink.cloned(),
            offers_tools: payload.request.tools.is_some(),
            begins_in_thought: payload.habits.begins_in_thought(),
            slot: Mutex::default(),
            refusal: Mutex::default(),
        })
    }

    async fn send(
        &self,
        endpoint: &Endpoint,
        payload: &Payload<'_>,
        transport: &Arc<Transport>,
    ) -> Result<Completion, LlmError> {
        let client = Client::build(transport.http.clone(), endpoint.configure(&self.0.template)?)
            .with_http_service(TransportService(Arc::clone(transport)));
        let mut chat = client.chat();
        if let Some(query) = endpoint.base_url.query() {
            chat = chat.path(format!("/chat/completions?{query}")).map_err(|error| unwrap_error(error, None))?;
        }
        let () = chat.create_byot(payload).await.map_err(|error| unwrap_error(error, endpoint.key()))?;
        let (mut decoded, attempts) =
            transport.take().ok_or_else(|| LlmError::unavailable(UnavailableKind::Dropped, "the reply was lost"))?;
        let request = payload.request;
        let called: usize = decoded.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let written = called + decoded.text.len() + decoded.reasoning.len();
        decoded.usage = decoded.usage.with_estimates(request.bytes(), written);
        Ok(Completion {
            text: decoded.text,
            tool_calls: decoded.tool_calls,
            finish_reason: decoded.finish_reason,
            usage: decoded.usage,
            reasoning: decoded.reasoning,
            ends_in_thought: decoded.ends_in_thought,
            begins_in_thought: decoded.begins_in_thought,
            echo: decoded.echo.from(payload.origin),
            model: decoded.model.unwrap_or_else(|| endpoint.model.clone()),
            output_limit: payload.output_limit(),
            attempts,
            latency: Duration::ZERO,
        })
    }
}

/// What an endpoint that refuses a request with these words is assumed to refuse: of what it was sent, the members that it names, or
/// all optional ones if it names none, or if leaving out those that it named was not enough. `None` if there is nothing to leave out.
fn refused_by(text: &str, payload: &Payload<'_>, made: u32) -> Option<Habits> {
    let optional = payload.optional();
    let limit = payload.output_limit().as_str();
    let limit = (made == 0 && habits::names(text, limit)).then_some(limit);
    let named: Vec<&str> = optional.iter().copied().filter(|member| habits::names(text, member)).chain(limit).collect();
    let left_out = match made {
        0 if !named.is_empty() => named,
        0 | 1 => optional,
        _ => Vec::new(),
    };
    (!left_out.is_empty()).then(|| payload.habits.refusing(left_out))
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
