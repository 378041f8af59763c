//! The pooled HTTP clients: several for the operator's endpoints, shared by thread, and one with guarded look-ups for tenants'.
//!
//! None of them follows redirects, reads proxies from the environment, decompresses, or retries by itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::endpoint::Endpoint;
use super::error::{LlmError, UnavailableKind, clean_detail};
use super::guard::{Guard, GuardedResolver};
use super::settings::LlmSettings;
use base::threads;

/// The most idle connections per host.
const IDLE_PER_HOST_MAX: usize = 64;
/// Less than the 60 s after which common load balancers drop an idle connection.
const IDLE_FOR: Duration = Duration::from_secs(50);
/// The most response headers that are accepted from an endpoint.
const HEADERS_MAX: usize = 100;

/// The clients of one [`super::LlmClient`]. Built once, because building reads the machine's root certificates.
pub(super) struct HttpClients {
    trusted: Vec<Client>,
    guarded: Client,
}

impl HttpClients {
    pub(super) fn build(settings: &LlmSettings, guard: &Arc<Guard>) -> Result<Self, LlmError> {
        let guarded = || builder(settings).dns_resolver(GuardedResolver::new(Arc::clone(guard)));
        let build = |finish: fn(ClientBuilder) -> reqwest::Result<Client>| {
            let trusted = (0..threads::shares()).map(|_| finish(builder(settings))).collect::<Result<_, _>>()?;
            Ok(Self { trusted, guarded: finish(guarded())? })
        };
        build(ClientBuilder::build).or_else(|error: reqwest::Error| {
            // A machine without root certificates can still call a model on loopback.
            tracing::warn!(%error, "no TLS root certificates: only http model endpoints will work");
            build(|builder| builder.tls_certs_only(Vec::new()).build()).map_err(|error| {
                LlmError::unavailable(UnavailableKind::Connect, clean_detail(&error.to_string(), None))
            })
        })
    }

    /// The client for an endpoint, from this thread's share.
    pub(super) fn of(&self, endpoint: &Endpoint) -> &Client {
        let share = if endpoint.trusted { self.trusted.get(threads::share_of(self.trusted.len())) } else { None };
        share.unwrap_or(&self.guarded)
    }
}

fn builder(settings: &LlmSettings) -> ClientBuilder {
    Client::builder()
        .connect_timeout(settings.connect_timeout)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .http1_max_headers(HEADERS_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
        .pool_idle_timeout(IDLE_FOR)
        .user_agent(concat!("tavernkeep/", env!("CARGO_PKG_VERSION")))
}
