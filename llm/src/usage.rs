//! Token counts from providers, made safe to add up.
//!
//! A provider's numbers are untrusted. Negative, missing, fractional or absurd numbers must never be counted.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most tokens that one call may count. More than any context window.
pub const TOKENS_PER_CALL_MAX: u64 = 100_000_000;
/// For estimates.
const BYTES_PER_TOKEN: u64 = 4;

/// The model calls and tokens of one call, or a sum over several. All counts are tokens except `llm_calls`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Usage {
    /// Model calls that were answered.
    pub llm_calls: u32,
    /// Tokens of the prompt, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens of the prompt that the provider took from its cache.
    pub cached_tokens: u64,
    /// Tokens the model wrote.
    pub completion_tokens: u64,
    /// The provider's total, or else prompt plus completion.
    pub total_tokens: u64,
    /// Whether some of these are our estimate, because the provider did not tell them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Reads the `usage` object of a reply, with OpenAI's names and those of common look-alikes. Clamps everything else to
    /// `0..=`[`TOKENS_PER_CALL_MAX`].
    pub(super) fn of_one_call(wire: Option<&Value>) -> Self {
        let count =
            |paths: &[&str]| paths.iter().find_map(|path| wire.and_then(|usage| usage.pointer(path)).and_then(tokens));
        let prompt_tokens = count(&["/prompt_tokens", "/input_tokens"]).unwrap_or(0);
        let cached_tokens = count(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]);
        let completion_tokens = count(&["/completion_tokens", "/output_tokens"]).unwrap_or(0);
        let total_tokens = match count(&["/total_tokens"]) {
            Some(total) if total > 0 => total,
            _ => (prompt_tokens + completion_tokens).min(TOKENS_PER_CALL_MAX),
        };
        Self {
            llm_calls: 1,
            prompt_tokens,
            cached_tokens: cached_tokens.unwrap_or(0).min(prompt_tokens),
            completion_tokens,
            total_tokens,
            estimated: false,
        }
    }

    /// The same with an estimate of what the provider did not tell: about four bytes per token. No prompt is empty.
    pub(super) fn with_estimates(self, prompt_bytes: usize, completion_bytes: usize) -> Self {
        let or_estimate = |told: u64, bytes: usize| match told {
            0 => (bytes as u64).div_ceil(BYTES_PER_TOKEN).min(TOKENS_PER_CALL_MAX),
            told => told,
        };
        let prompt_tokens = or_estimate(self.prompt_tokens, prompt_bytes);
        let completion_tokens = or_estimate(self.completion_tokens, completion_bytes);
        if (prompt_tokens, completion_tokens) == (self.prompt_tokens, self.completion_tokens) {
            return self;
        }
        Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: self.total_tokens.max(prompt_tokens + completion_tokens).min(TOKENS_PER_CALL_MAX),
            estimated: true,
            ..self
        }
    }
}

/// `None` if the value is not a number, so that another name can be tried.
fn tokens(value: &Value) -> Option<u64> {
    let count = match value {
        Value::Number(number) => match number.as_u64() {
            Some(count) => count,
            // A float cast saturates: negative and NaN give 0.
            None => number.as_f64()? as u64,
        },
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(count.min(TOKENS_PER_CALL_MAX))
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.llm_calls = self.llm_calls.saturating_add(other.llm_calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.estimated = self.estimated || other.estimated;
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(calls: I) -> Self {
        calls.fold(Self::default(), Add::add)
    }
}
