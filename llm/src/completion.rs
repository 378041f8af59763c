//! A model's answer, as far as the client reads it. Untrusted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::echo::Echo;
use super::parameters::OutputLimit;
use super::usage::Usage;

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
    /// What the model thought before it answered, if the provider tells. Never part of the text. Untrusted.
    pub reasoning: String,
    /// Whether the reply ended before the model had thought to the end.
    pub ends_in_thought: bool,
    /// Whether it began within a thought, as all replies of this endpoint and model may.
    pub begins_in_thought: bool,
    /// What the endpoint wants back with this reply: see [`crate::Message::reply`].
    pub echo: Echo,
    /// The model that answered according to the provider, or else the requested one.
    pub model: String,
    /// The name under which the endpoint takes the output limit.
    pub output_limit: OutputLimit,
    /// How many attempts were made, including the last.
    pub attempts: u32,
    /// From the call of [`crate::LlmClient::complete`] to its return.
    pub latency: Duration,
}

impl Completion {
    /// How the reply ended. A reason that nobody knows means that the model was done.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let reason = self.finish_reason.as_deref().unwrap_or_default();
        let is_one_of = |names: &[&str]| names.iter().any(|name| reason.eq_ignore_ascii_case(name));
        if is_one_of(&["length", "max_tokens", "max_output_tokens", "model_length"]) {
            Ending::Truncated
        } else if is_one_of(&[
            "content_filter",
            "content_filtered",
            "safety",
            "refusal",
            "recitation",
            "prohibited_content",
        ]) {
            Ending::ContentFiltered
        } else {
            Ending::Complete
        }
    }

    /// Whether the model had to stop writing because of a limit.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.ending() == Ending::Truncated
    }
}

/// How a model's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model was done.
    Complete,
    /// A limit cut it: the model's output limit, or ours.
    Truncated,
    /// The provider's filter cut it.
    ContentFiltered,
}

/// A call as the model wrote it. Untrusted: see [`super::reply::parse_native`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireToolCall {
    /// The provider's id. Never empty, and unique within the reply.
    pub id: String,
    /// The tool's name. Empty if the model gave none.
    pub name: String,
    /// Raw JSON text. May be anything.
    pub arguments: String,
    /// What its endpoint wants back with it.
    pub echo: Echo,
}
