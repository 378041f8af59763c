//! One scripted reply: what to answer, and how the delivery goes wrong.
//!
//! The fields are flat because people write them by hand in JSON. A reply has at most one *kind*: a completion (`text`,
//! `tool_calls`, `refusal`, `repeat_bytes`), a plain response (`status`, `raw_body`), `close` or `hang`. Without a kind
//! the persona answers, and the modifiers apply to its answer. This file contains only data and its checks; it must
//! never deliver anything.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum of `repeat_bytes`: 1 GiB.
pub const REPEAT_BYTES_MAX: u64 = 1 << 30;
/// The maximum of every delay: one hour, in milliseconds.
pub const DELAY_MS_MAX: u64 = 3_600_000;

/// A scripted reply. Build it with [`Reply::text`] and its siblings, or read it from JSON.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The assistant's text. With `repeat_bytes` it is the phrase to repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<ScriptedCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<String>,
    /// A text with exactly this many bytes, made while it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repeat_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finish_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<UsageOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The body of a `status` reply. Default: an OpenAI-shaped error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<RetryAfter>,
    /// Sent as it is, with `status` or 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_body: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) close: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hang: bool,
    /// Whether to wait until the handle releases it. Scripts from files cannot use this, because only the owner of the handle can
    /// release a reply.
    #[serde(skip)]
    pub(crate) held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) truncate_after_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_delay_ms: Option<u64>,
    /// Pause between the events of a stream, or between the pieces of `chunk_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chunk_delay_ms: Option<u64>,
    /// Sends the body in pieces of this size, without regard for events or characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chunk_bytes: Option<usize>,
    /// Characters per stream delta, for text and tool arguments. Default: a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delta_chars: Option<usize>,
}

/// A tool call of a scripted reply.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The name of the tool, which need not be offered.
    pub name: String,
    /// An object, or a string that is sent unchanged (for broken JSON).
    #[serde(default)]
    pub arguments: Value,
    /// The id. Default: derived from the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The `Retry-After` header.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum RetryAfter {
    /// Whole seconds.
    Seconds(u64),
    /// Anything else, such as an HTTP date.
    Text(String),
}

/// Figures that replace the counted ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageOverride {
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Default: the sum of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Prompt tokens served from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
}

impl From<u64> for RetryAfter {
    fn from(seconds: u64) -> Self {
        Self::Seconds(seconds)
    }
}

impl From<&str> for RetryAfter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Reply {
    /// Whether the reply itself contains the assistant's answer.
    pub(crate) fn is_completion(&self) -> bool {
        self.text.is_some() || !self.tool_calls.is_empty() || self.refusal.is_some() || self.repeat_bytes.is_some()
    }

    /// Whether the reply is an HTTP response instead of a completion.
    pub(crate) fn is_plain(&self) -> bool {
        self.status.is_some() || self.raw_body.is_some()
    }

    /// Finds contradictions in this reply.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let kinds = [self.is_completion(), self.is_plain(), self.close, self.hang];
        if kinds.into_iter().filter(|given| *given).count() > 1 {
            return Err("give one of text/tool_calls/refusal/repeat_bytes, status/raw_body, close, hang");
        }
        if self.body.is_some() && (self.status.is_none() || self.raw_body.is_some()) {
            return Err("body needs a status and no raw_body");
        }
        if self.retry_after.is_some() && self.status.is_none() {
            return Err("retry_after needs a status");
        }
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err("status must be between 200 and 599");
        }
        if self.repeat_bytes.is_some_and(|bytes| bytes > REPEAT_BYTES_MAX) {
            return Err("repeat_bytes is larger than 1 GiB");
        }
        if self.chunk_bytes == Some(0) || self.delta_chars == Some(0) {
            return Err("chunk_bytes and delta_chars must be at least 1");
        }
        let delays = [self.delay_ms, self.body_delay_ms, self.chunk_delay_ms];
        if delays.into_iter().flatten().any(|delay| delay > DELAY_MS_MAX) {
            return Err("a delay is longer than an hour");
        }
        Ok(())
    }
}
