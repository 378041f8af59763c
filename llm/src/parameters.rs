//! What is sent with every request to a model beside the conversation: the output limit, sampling parameters, and members that only
//! some providers know.
//!
//! A request always has an output limit. Members that the client writes itself ([`is_ours`]) cannot be set from outside.

use std::{collections::BTreeMap, str::FromStr};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Members of a request that belong to the client. Replacing one would change what is asked, how it is read, or who pays.
const OURS: [&str; 20] = [
    "model",
    "messages",
    "prompt",
    "input",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "n",
    "user",
    "store",
    "metadata",
    "prompt_cache_key",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "logprobs",
    "top_logprobs",
];

/// Parameters with a field of their own in [`Parameters`].
const NAMED: [&str; 7] =
    ["temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "reasoning_effort"];

/// Parameters of sampling that only some servers know. At the operator's endpoint a tenant can set these and no others: gateways have
/// members that choose another model or another address.
const SAMPLING: [&str; 14] = [
    "top_k",
    "top_a",
    "min_p",
    "typical_p",
    "tfs",
    "repetition_penalty",
    "repetition_penalty_range",
    "repeat_penalty",
    "repeat_last_n",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "logit_bias",
    "dynatemp_range",
];

/// Whether a member of [`Parameters::extra`] only changes how the model samples.
#[must_use]
pub fn is_sampling(member: &str) -> bool {
    SAMPLING.contains(&member)
}

/// Whether [`Parameters::extra`] cannot contain a member, because the client writes it or [`Parameters`] has a field for it.
#[must_use]
pub fn is_ours(member: &str) -> bool {
    OURS.iter().chain(&NAMED).any(|name| name.eq_ignore_ascii_case(member))
}

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

/// Sampling parameters of a model, in the words of OpenAI's chat completions. What is null or empty is not sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Randomness. 0 makes the likeliest answer.
    #[schema(minimum = 0, maximum = 2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Samples only from the likeliest tokens that together have this probability.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of one answer, reasoning included. A limit is always sent; null means the operator's.
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Asks for the same answer to the same request.
    #[schema(minimum = -9_007_199_254_740_991i64, maximum = 9_007_199_254_740_991i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Makes what was mentioned less likely.
    #[schema(minimum = -2, maximum = 2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Makes a token less likely each time it is used.
    #[schema(minimum = -2, maximum = 2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// How much the model reasons before it answers. Models that do not reason may refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Further members of the request, such as `min_p`, `repetition_penalty` or `provider`. Never members that the server writes.
    #[schema(value_type = Object)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
}

/// The name of the output limit in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimit {
    /// Understood nearly everywhere.
    #[default]
    MaxTokens,
    /// What OpenAI's reasoning models ask for.
    MaxCompletionTokens,
}

/// A name that is neither of the two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `max_tokens` or `max_completion_tokens`")]
pub struct UnknownOutputLimit;

impl FromStr for OutputLimit {
    type Err = UnknownOutputLimit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::MaxTokens, Self::MaxCompletionTokens]
            .into_iter()
            .find(|limit| limit.as_str() == text.trim())
            .ok_or(UnknownOutputLimit)
    }
}

impl OutputLimit {
    /// The other name.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::MaxTokens => Self::MaxCompletionTokens,
            Self::MaxCompletionTokens => Self::MaxTokens,
        }
    }

    /// The member of the request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

impl Parameters {
    /// Writes the parameters into a request, without the output limit.
    pub(super) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let numbers = [
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                map.serialize_entry(name, &number)?;
            }
        }
        if !self.stop.is_empty() {
            map.serialize_entry("stop", &self.stop)?;
        }
        if let Some(seed) = self.seed {
            map.serialize_entry("seed", &seed)?;
        }
        if let Some(effort) = self.reasoning_effort {
            map.serialize_entry("reasoning_effort", &effort)?;
        }
        // What is stored may be older than the list.
        for (name, value) in self.extra.iter().filter(|(name, _)| !is_ours(name)) {
            map.serialize_entry(name, value)?;
        }
        Ok(())
    }
}
