//! The two pooled HTTP clients: one for the operator's endpoints, one whose look-ups are guarded.
//!
//! Neither follows redirects, reads proxies from the environment, decompresses, or retries by itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::error::{LlmError, UnavailableKind, clean_detail};
use super::guard::{Guard, GuardedResolver};
use super::settings::LlmSettings;

/// Idle connections kept per host.
const IDLE_PER_HOST_MAX: usize = 64;
/// Below the 60 s after which common load balancers drop an idle connection.
const IDLE_FOR: Duration = Duration::from_secs(50);
/// Response headers accepted from an endpoint.
const HEADERS_MAX: usize = 100;

/// The clients of one [`super::LlmClient`]. Built once: building reads the machine's root certificates.
pub(super) struct HttpClients {
    pub(super) trusted: Client,
    pub(super) guarded: Client,
}

impl HttpClients {
    pub(super) fn build(settings: &LlmSettings, guard: &Arc<Guard>) -> Result<Self, LlmError> {
        let guarded = || builder(settings).dns_resolver(GuardedResolver::new(Arc::clone(guard)));
        let plain = || builder(settings);
        match (plain().build(), guarded().build()) {
            (Ok(trusted), Ok(guarded)) => Ok(Self { trusted, guarded }),
            (Err(error), _) | (_, Err(error)) => {
                // A machine without root certificates can still talk to a model on loopback.
                tracing::warn!(%error, "no TLS root certificates: only http model endpoints will work");
                let rootless = |builder: ClientBuilder| builder.tls_certs_only(Vec::new()).build();
                Ok(Self {
                    trusted: rootless(plain()).map_err(|error| unbuildable(&error))?,
                    guarded: rootless(guarded()).map_err(|error| unbuildable(&error))?,
                })
            }
        }
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

fn unbuildable(error: &reqwest::Error) -> LlmError {
    LlmError::unavailable(UnavailableKind::Connect, clean_detail(&error.to_string(), None))
}
