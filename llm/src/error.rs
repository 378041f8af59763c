//! The errors of model calls, and what each may reveal.
//!
//! An error must never contain a key, or more of a provider's body than [`DETAIL_CHARS_MAX`] cleaned characters.
//! To add a failure, add a variant here with its arms in `code`, `retry_after` and `metric_label`.

use std::time::Duration;

use super::endpoint::Secret;
use super::guard::EndpointRefused;

/// The most characters of a provider's text that an error contains.
pub const DETAIL_CHARS_MAX: usize = 200;

/// Which time limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutPhase {
    /// Look-up, TCP or TLS took too long at every attempt.
    Connect,
    /// The first byte of the reply did not come in time.
    FirstToken,
    /// A streamed reply stalled.
    Idle,
    /// The whole call took too long.
    Total,
}

impl TimeoutPhase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::FirstToken => "waiting for its first byte",
            Self::Idle => "waiting for the next piece of its reply",
            Self::Total => "waiting for the whole reply",
        }
    }
}

/// Why an endpoint gave no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnavailableKind {
    /// No connection could be made.
    Connect,
    /// The connection broke before the reply was complete.
    Dropped,
    /// 429: too many requests, or no quota left.
    RateLimited,
    /// 408 or a 5xx status.
    Server,
    /// Another 3xx or 4xx status: the endpoint works, but not with this key, model or request.
    Rejected,
    /// A 200 whose body reports an error.
    Provider,
}

impl UnavailableKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Dropped => "the connection broke",
            Self::RateLimited => "rate limited",
            Self::Server => "server error",
            Self::Rejected => "request rejected",
            Self::Provider => "the provider reports an error",
        }
    }
}

/// Why a model call gave no completion. The endpoint's own text is only for the operator's log;
/// [`LlmError::public_message`] leaves it out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The endpoint could not be reached or did not serve the request.
    #[error("the model endpoint is unavailable: {}{}{}", .kind.as_str(), status_text(*.status), detail_text(.detail))]
    Unavailable {
        /// What happened.
        kind: UnavailableKind,
        /// The HTTP status, if there was an answer.
        status: Option<u16>,
        /// Cleaned and short; may be empty.
        detail: String,
        /// How long the endpoint asked us to wait.
        retry_after: Option<Duration>,
    },
    /// A time limit was reached.
    #[error("the model endpoint timed out while {}", .phase.as_str())]
    Timeout {
        /// Which time limit.
        phase: TimeoutPhase,
    },
    /// The caller cancelled.
    #[error("the model call was cancelled")]
    Cancelled,
    /// The server may not connect to the endpoint's address.
    #[error("the model endpoint is refused: {0}")]
    Refused(#[from] EndpointRefused),
    /// The reply is larger than the limit. The rest of it was not read.
    #[error("the model's reply is over {limit_bytes} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A 200 that is not a chat completion.
    #[error("the model endpoint sent an unusable reply{}", detail_text(.detail))]
    BadReply {
        /// Cleaned and short.
        detail: String,
    },
    /// The endpoint failed too often. Nothing was sent.
    #[error("the model endpoint failed repeatedly and is not called for {} s", .retry_after.as_secs().max(1))]
    BreakerOpen {
        /// The time until a probe is allowed.
        retry_after: Duration,
    },
}

impl LlmError {
    /// Whether another model might answer: this one cannot be reached, is overloaded, broken or too slow. A request that was rejected
    /// or cancelled stays so.
    #[must_use]
    pub fn may_fall_back(&self) -> bool {
        match self {
            Self::Unavailable { kind, .. } => *kind != UnavailableKind::Rejected,
            Self::Timeout { phase } => *phase != TimeoutPhase::Total,
            Self::BreakerOpen { .. } | Self::BadReply { .. } | Self::TooLarge { .. } => true,
            Self::Cancelled | Self::Refused(_) => false,
        }
    }

    /// The problem code for clients.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "llm_timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable { .. }
            | Self::Refused(_)
            | Self::TooLarge { .. }
            | Self::BadReply { .. }
            | Self::BreakerOpen { .. } => "llm_unavailable",
        }
    }

    /// The text for players: what happened, without the endpoint's own text, which may name accounts and hosts.
    #[must_use]
    pub fn public_message(&self) -> String {
        let mut told = self.clone();
        if let Self::Unavailable { detail, .. } | Self::BadReply { detail } = &mut told {
            detail.clear();
        }
        told.to_string()
    }

    /// The same without its detail, if that quotes one of these secrets.
    pub(super) fn without<'a>(mut self, mut secrets: impl Iterator<Item = &'a str>) -> Self {
        if let Self::Unavailable { detail, .. } | Self::BadReply { detail } = &mut self
            && secrets.any(|secret| secret.len() >= 6 && detail.contains(secret))
        {
            detail.clear();
        }
        self
    }

    /// How long a client should wait, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            Self::BreakerOpen { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// A name from a fixed set, for a metric's label.
    pub fn metric_label(&self) -> &'static str {
        match self {
            Self::Unavailable { kind, .. } => match kind {
                UnavailableKind::Connect => "connect",
                UnavailableKind::Dropped => "dropped",
                UnavailableKind::RateLimited => "rate_limited",
                UnavailableKind::Server => "server_error",
                UnavailableKind::Rejected => "rejected",
                UnavailableKind::Provider => "provider_error",
            },
            Self::Timeout { phase } => match phase {
                TimeoutPhase::Connect => "timeout_connect",
                TimeoutPhase::FirstToken => "timeout_first_token",
                TimeoutPhase::Idle => "timeout_idle",
                TimeoutPhase::Total => "timeout_total",
            },
            Self::Cancelled => "cancelled",
            Self::Refused(_) => "refused",
            Self::TooLarge { .. } => "too_large",
            Self::BadReply { .. } => "bad_reply",
            Self::BreakerOpen { .. } => "breaker_open",
        }
    }

    pub(super) fn unavailable(kind: UnavailableKind, detail: impl Into<String>) -> Self {
        Self::Unavailable { kind, status: None, detail: detail.into(), retry_after: None }
    }
}

impl From<LlmError> for async_openai::error::OpenAIError {
    /// Passes our error through the library. `client.rs` extracts it again.
    fn from(error: LlmError) -> Self {
        Self::Boxed(Box::new(error))
    }
}

fn status_text(status: Option<u16>) -> String {
    status.map(|code| format!(" (HTTP {code})")).unwrap_or_default()
}

fn detail_text(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

/// Cleans foreign text for an error: one line, no control or direction characters, no key, limited length.
pub(super) fn clean_detail(text: &str, secret: Option<&Secret>) -> String {
    // Only the beginning is read. A key that crosses its end could survive in part, so it is longer than the kept text by more than
    // any key's length.
    let head: String = text.chars().take(DETAIL_CHARS_MAX + 2_048).collect();
    let mut line = String::with_capacity(head.len().min(1_024));
    for piece in head.split(|c: char| c.is_whitespace() || is_unprintable(c)).filter(|piece| !piece.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(piece);
    }
    if let Some(key) = secret.map(Secret::expose).filter(|key| !key.is_empty()) {
        line = line.replace(key, "***");
    }
    if line.chars().count() > DETAIL_CHARS_MAX {
        line = line.chars().take(DETAIL_CHARS_MAX - 1).chain(['…']).collect();
    }
    line
}

fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
