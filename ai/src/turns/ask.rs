//! One model call of a turn, with its metrics and its record. Used by all kinds of turns.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{LlmCall, runner::millis};
use crate::turns::state::TurnState;
use base::{
    error::{Code, Error, Result},
    metrics,
};
use llm::{CancellationToken, ChatRequest, Completion, Endpoint, LlmError};

/// The most bytes of a reply's text that a turn's record keeps.
const RECORD_TEXT_BYTES: usize = 64 * 1024;

/// Asks the model, but waits only for `patience`. A call that is given up does not count as a failure for the breaker, because
/// others may wait longer.
///
/// # Errors
/// `llm_unavailable`, `llm_timeout`.
pub async fn ask_within(
    app: &TurnState,
    endpoint: &Endpoint,
    request: &ChatRequest<'_>,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<(Completion, LlmCall)> {
    match timeout(patience, ask(app, endpoint, request, cancel)).await {
        Ok(answer) => answer,
        Err(_) => {
            metrics::LLM_CALLS.with_label_values(&["given_up"]).inc();
            metrics::LLM_SECONDS.with_label_values(&["given_up"]).observe(patience.as_secs_f64());
            Err(Error::new(Code::LlmTimeout, "The model did not answer in time."))
        }
    }
}

/// Asks the model.
///
/// # Errors
/// `llm_unavailable`, `llm_timeout`.
pub async fn ask(
    app: &TurnState,
    endpoint: &Endpoint,
    request: &ChatRequest<'_>,
    cancel: &CancellationToken,
) -> Result<(Completion, LlmCall)> {
    let asked = Instant::now();
    let answer = app.llm.client().complete(endpoint, request, cancel).await;
    let took = asked.elapsed();
    let outcome = answer.as_ref().map_or_else(LlmError::metric_label, |_| "ok");
    metrics::LLM_CALLS.with_label_values(&[outcome]).inc();
    metrics::LLM_SECONDS.with_label_values(&[outcome]).observe(took.as_secs_f64());
    let mut completion = answer.map_err(provider_error)?;
    completion.latency = took;
    for (kind, tokens) in [
        ("prompt", completion.usage.prompt_tokens),
        ("cached", completion.usage.cached_tokens),
        ("completion", completion.usage.completion_tokens),
    ] {
        metrics::LLM_TOKENS.with_label_values(&[kind]).inc_by(tokens);
    }
    let kept = completion.text.floor_char_boundary(RECORD_TEXT_BYTES);
    let call = LlmCall {
        model: completion.model.clone(),
        latency_ms: millis(took),
        attempts: completion.attempts,
        finish_reason: completion.finish_reason.clone(),
        usage: completion.usage,
        text: completion.text.get(..kept).unwrap_or_default().replace('\0', ""),
    };
    Ok((completion, call))
}

fn provider_error(error: LlmError) -> Error {
    let code = if error.code() == "llm_timeout" { Code::LlmTimeout } else { Code::LlmUnavailable };
    let (told, wait) = (error.told(), error.retry_after());
    let ours = Error::new(code, told).with_cause(error);
    match wait {
        Some(wait) => ours.retry_after(wait.as_secs()),
        None => ours,
    }
}
