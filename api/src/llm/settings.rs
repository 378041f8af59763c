//! What an operator may set about model calls. Plain data: reading the environment is the configuration's work.

use std::time::Duration;

use super::guard::AllowedHost;

/// Longer durations are taken for this one; some would overflow the clock.
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
    /// Further attempts after the first.
    pub retries: u32,
    /// The largest reply body that is read, in bytes; a bigger one is an error.
    pub reply_bytes_max: usize,
    /// Failed calls in a row that open an endpoint's breaker; 0 turns breakers off.
    pub breaker_failures: u32,
    /// How long an open breaker refuses calls before it lets one probe through.
    pub breaker_open: Duration,
    /// Where tenants may point their endpoints: empty means any public host over https on 443 or 8443,
    /// otherwise only what is listed. Endpoints set by the operator are not subject to it.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Lets tenants use http, any port, and loopback and private addresses. For development only.
    pub allow_private: bool,
}

impl Default for LlmSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(3_000),
            first_token_timeout: Duration::from_millis(20_000),
            total_timeout: Duration::from_millis(60_000),
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
