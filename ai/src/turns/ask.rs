//! One model call of a turn, with its metrics and its record. Used by all kinds of turns.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::view::{LlmCall, Tried};
use crate::{prompt::size, state::Ai};
use base::{
    clock::millis,
    error::{Code, Error, Result},
    metrics, text,
};
use edge::{models::Choice, tenants::tasks::Task};
use llm::{CancellationToken, ChatRequest, Completion, Ending, LlmError, Sink};

/// The most bytes of a reply's text, and of its reasoning, that a turn's record keeps.
const RECORD_TEXT_BYTES: usize = 64 * 1024;
const RECORD_REASONING_BYTES: usize = 16 * 1024;

/// Asks the model, but waits only for `patience`. A call that is given up does not count as a failure for the breaker, because
/// others may wait longer.
///
/// # Errors
/// Those of [`ask`].
pub async fn ask_within(
    app: &Ai,
    task: Task,
    choice: &Choice,
    request: &ChatRequest<'_>,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<(Completion, LlmCall)> {
    match timeout(patience, ask(app, task, choice, request, cancel)).await {
        Ok(answer) => answer,
        Err(_) => {
            metrics::LLM_CALLS.with_label_values(&["given_up"]).inc();
            metrics::LLM_SECONDS.with_label_values(&["given_up"]).observe(patience.as_secs_f64());
            Err(Error::new(Code::LlmTimeout, "The model did not answer in time."))
        }
    }
}

/// Asks the model, and its fallbacks if it cannot answer. Once part of an answer was passed on, no fallback is asked.
///
/// # Errors
/// `prompt_too_large` before anything is sent; `llm_unavailable`, `llm_timeout`. If all fail, the last model's error is returned.
pub async fn ask(
    app: &Ai,
    task: Task,
    choice: &Choice,
    request: &ChatRequest<'_>,
    cancel: &CancellationToken,
) -> Result<(Completion, LlmCall)> {
    let mut tried: Vec<Tried> = Vec::new();
    // An answer that was paid for and says nothing, and its place in `tried`. It is the answer if nobody has a better one.
    let mut useless: Option<(usize, Completion, LlmCall)> = None;
    let request = &sized(choice, request).await?;
    let too_large = |choice: &Choice| size::too_large(request.prompt_tokens?, app.llm.window(choice)?);
    if let Some(size) = too_large(choice) {
        metrics::PROMPTS_OVER_CONTEXT.with_label_values(&["too_large"]).inc();
        return Err(Error::prompt_too_large(&choice.endpoint.model, size));
    }
    // A model that cannot hold the prompt is not asked.
    let mut others = choice.fallbacks.iter().map(AsRef::as_ref).filter(|other| too_large(other).is_none());
    let mut asked = choice;
    // No fallback begins later, so that a chain of slow models ends.
    let (begun, patience) = (Instant::now(), app.llm.total_timeout(&choice.endpoint));
    loop {
        let answer = ask_one(app, task, asked, request, cancel).await;
        let reason = match &answer {
            Ok((completion, _)) => why_useless(completion, request),
            Err(error) => error.may_fall_back().then(|| error.metric_label()),
        };
        let is_told = request.sink.is_some_and(Sink::has_told) || cancel.is_cancelled();
        let next =
            reason.filter(|_| !is_told && begun.elapsed() < patience).and_then(|reason| Some((reason, others.next()?)));
        let Some((reason, other)) = next else {
            let (mut completion, mut call) = match (answer, useless) {
                (Ok(answer), _) => answer,
                (Err(error), Some((at, completion, call))) if !is_told => {
                    tried.remove(at);
                    tried.push(said_nothing(asked, error.metric_label(), None));
                    (completion, call)
                }
                (Err(error), _) => return Err(provider_error(error)),
            };
            for usage in tried.iter().filter_map(|tried| tried.usage) {
                completion.usage += usage;
            }
            call.tried = tried;
            return Ok((completion, call));
        };
        metrics::LLM_FALLBACKS.with_label_values(&[reason]).inc();
        tried.push(said_nothing(asked, reason, answer.as_ref().ok().map(|(_, call)| call)));
        if let Ok((completion, call)) = answer {
            useless = Some((tried.len() - 1, completion, call));
        }
        asked = other;
    }
}

/// The request with the size of its prompt, if that limits the answer of a model that may be asked.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn sized<'r>(choice: &Choice, request: &ChatRequest<'r>) -> Result<ChatRequest<'r>> {
    let mut asked = std::iter::once(choice).chain(choice.fallbacks.iter().map(AsRef::as_ref));
    let prompt_tokens = match asked.any(|choice| choice.endpoint.options.context_tokens.is_some()) {
        true => Some(size::of_request(request).await?),
        false => None,
    };
    Ok(ChatRequest { prompt_tokens, ..*request })
}

/// The record of a model that was asked in vain. `call` is what it was paid for.
fn said_nothing(asked: &Choice, reason: &str, call: Option<&LlmCall>) -> Tried {
    Tried {
        profile: asked.profile.clone(),
        model: asked.endpoint.model.clone(),
        reason: reason.to_owned(),
        usage: call.map(|call| call.usage),
        cost_micros: call.and_then(|call| call.cost_micros),
    }
}

/// Why a reply is useless to a turn. None if it is usable: after tool calls, silence is an ordinary end.
fn why_useless(completion: &Completion, request: &ChatRequest<'_>) -> Option<&'static str> {
    match completion.ending() {
        Ending::ContentFiltered => Some("refused"),
        _ if !request.messages.is_empty() || !completion.tool_calls.is_empty() => None,
        _ => completion.text.trim().is_empty().then_some("empty"),
    }
}

#[tracing::instrument(level = "debug", name = "model_call", skip_all, fields(task = task.as_str(), model = choice.endpoint.model))]
async fn ask_one(
    app: &Ai,
    task: Task,
    choice: &Choice,
    request: &ChatRequest<'_>,
    cancel: &CancellationToken,
) -> std::result::Result<(Completion, LlmCall), LlmError> {
    let asked = Instant::now();
    let answer = app.llm.client().complete(&choice.endpoint, request, cancel).await;
    let took = asked.elapsed();
    let outcome = answer.as_ref().map_or_else(LlmError::metric_label, |_| "ok");
    metrics::LLM_CALLS.with_label_values(&[outcome]).inc();
    metrics::LLM_SECONDS.with_label_values(&[outcome]).observe(took.as_secs_f64());
    let mut completion = answer?;
    completion.latency = took;
    for (kind, tokens) in [
        ("prompt", completion.usage.prompt_tokens),
        ("cached", completion.usage.cached_tokens),
        ("completion", completion.usage.completion_tokens),
    ] {
        metrics::LLM_TOKENS.with_label_values(&[kind]).inc_by(tokens);
    }
    let call = LlmCall {
        task: Some(task),
        profile: choice.profile.clone(),
        parameters: choice.endpoint.options.parameters.clone(),
        cost_micros: choice.prices.map(|prices| prices.cost_micros(&completion.usage)),
        tried: Vec::new(),
        model: completion.model.clone(),
        latency_ms: millis(took),
        attempts: completion.attempts,
        finish_reason: completion.finish_reason.clone(),
        usage: completion.usage,
        text: head(&completion.text, RECORD_TEXT_BYTES),
        reasoning: head(&completion.reasoning, RECORD_REASONING_BYTES),
    };
    Ok((completion, call))
}

/// The beginning of a text, as a record can store it.
fn head(text: &str, bytes_max: usize) -> String {
    text.get(..text.floor_char_boundary(bytes_max)).map(text::cleaned).unwrap_or_default().into_owned()
}

fn provider_error(error: LlmError) -> Error {
    let code = if error.code() == "llm_timeout" { Code::LlmTimeout } else { Code::LlmUnavailable };
    let (told, wait) = (error.public_message(), error.retry_after());
    let ours = Error::new(code, told).with_cause(error);
    match wait {
        Some(wait) => ours.retry_after(wait.as_secs()),
        None => ours,
    }
}
