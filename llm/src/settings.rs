//! The operator's settings for model calls. Plain data; the configuration reads the environment.

use std::time::Duration;

use super::guard::AllowedHost;

/// Longer durations are reduced to this one, because some would overflow the clock.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits and timeouts of [`super::LlmClient`].
#[derive(Debug, Clone)]
pub struct LlmSettings {
    /// Name look-up, TCP and TLS together, per attempt.
    pub connect_timeout: Duration,
    /// From sending an attempt to the first byte of its body, per attempt.
    pub first_token_timeout: Duration,
    /// The whole call: all attempts, the pauses between them, and reading the reply.
    pub total_timeout: Duration,
    /// The most tokens of an answer, for models whose own options have no limit.
    pub output_tokens_max: u32,
    /// How many attempts may follow the first.
    pub retries: u32,
    /// The most bytes of a reply's body. A larger reply is an error.
    pub reply_bytes_max: usize,
    /// After this many failed calls in a row an endpoint's breaker opens. 0 turns breakers off.
    pub breaker_failures: u32,
    /// How long an open breaker rejects calls before it allows a probe.
    pub breaker_open: Duration,
    /// The hosts that tenants' endpoints may use. If the list is empty, any public host over https on 443 or 8443; otherwise only
    /// the listed ones. It does not apply to the operator's endpoints.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Whether tenants may use http, any port, and loopback and private addresses. Only for development.
    pub allow_private: bool,
}

impl Default for LlmSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(3_000),
            first_token_timeout: Duration::from_millis(20_000),
            total_timeout: Duration::from_millis(60_000),
            output_tokens_max: 4096,
            retries: 2,
            reply_bytes_max: 16 * 1024 * 1024,
            breaker_failures: 5,
            breaker_open: Duration::from_secs(15),
            allowed_hosts: Vec::new(),
            allow_private: false,
        }
    }
}

impl LlmSettings {
    pub(super) fn bounded(mut self) -> Self {
        let durations =
            [&mut self.connect_timeout, &mut self.first_token_timeout, &mut self.total_timeout, &mut self.breaker_open];
        for duration in durations {
            *duration = (*duration).min(DURATION_MAX);
        }
        self
    }
}
