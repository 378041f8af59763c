//! Asks a profile's endpoint what it offers and what works there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::{caller::Caller, limits::Permit, models::profile::Supports, state::Edge};
use base::{
    clock,
    error::{Code, Error, Result},
};
use db::tenancy;
use llm::{
    CallOptions, CancellationToken, ChatRequest, Completion, Endpoint, LlmError, Message, Role, Sink, TimeoutPhase,
    ToolChoice, Usage,
};

/// How long one question of a test may take.
const QUESTION_WAIT: Duration = Duration::from_secs(30);
/// The most tokens of an answer in a test. Models that reason need some before they answer.
const ANSWER_TOKENS: u32 = 1000;
/// The most characters of what was seen.
const SEEN_CHARS_MAX: usize = 200;
/// Enough repetitions of a sentence to reach the shortest prompt that providers cache.
const CACHED_SENTENCES: usize = 120;

/// What was found out about a model profile.
#[derive(Serialize, ToSchema)]
pub struct TestView {
    /// The model that answered, in the provider's words.
    pub model: String,
    /// Whether the model answered at all. If not, nothing else was tried.
    pub works: bool,
    /// What was tried.
    pub checks: Vec<Check>,
    /// What was found, in the form of a profile's `supports`.
    pub supports: Supports,
    /// What the test used.
    pub usage: Usage,
}

impl CheckName {
    /// What people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Answer => "Answers",
            Self::Streaming => "Streams",
            Self::StreamUsage => "Token counts in streams",
            Self::Tools => "Tool calls",
            Self::ParallelTools => "Several tool calls at once",
            Self::JsonSchema => "JSON Schema",
            Self::CachedTokens => "Cached prompts",
            Self::Reasoning => "Reasoning",
        }
    }
}

/// One thing that was tried.
#[derive(Serialize, ToSchema)]
pub struct Check {
    pub name: CheckName,
    /// Null if it could not be tried.
    pub works: Option<bool>,
    /// What was seen, in a sentence.
    #[schema(max_length = 300)]
    pub seen: String,
}

/// What is tried.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    Answer,
    Streaming,
    StreamUsage,
    Tools,
    ParallelTools,
    JsonSchema,
    CachedTokens,
    Reasoning,
}

/// A model that an endpoint offers.
#[derive(Serialize, ToSchema)]
pub struct AvailableModel {
    /// The name to write into a profile's `model`.
    pub id: String,
}

/// Counts a question to an endpoint as a turn, and lets its request wait outside of the places for requests. The tenant has
/// one more running turn until the answer is dropped.
fn asks(app: &Edge, caller: &Caller) -> Result<Permit> {
    let running =
        app.limits.turns.take(caller.tenant_id(), caller.tenant.limits.concurrent_turns, "concurrent-turns")?;
    let counted = app.limits.take_turn(&caller.tenant)?;
    app.admission.wait(caller.tenant_id())?;
    counted.keep();
    Ok(running)
}

/// The models that an endpoint offers. Counts as a turn in the tenant's limits.
///
/// # Errors
/// `llm_unavailable`, `llm_timeout`, `rate_limited`, `unavailable`.
pub async fn available(app: &Edge, caller: &Caller, endpoint: &Endpoint) -> Result<Vec<AvailableModel>> {
    let _running = asks(app, caller)?;
    let names = app.llm.client().list_models(endpoint).await.map_err(|error| {
        let code = if error.code() == "llm_timeout" { Code::LlmTimeout } else { Code::LlmUnavailable };
        let told = format!("The endpoint did not list its models: {}.", error.public_message());
        Error::new(code, told).with_cause(error)
    })?;
    // Of the operator's models, a tenant sees only those that it may choose.
    let names = names.into_iter().filter(|name| !endpoint.trusted || app.llm.check_model(name).is_ok());
    Ok(names.map(|id| AvailableModel { id }).collect())
}

/// Tries an endpoint with a few short questions, which together take at most as long as one call may. Failures are findings, not errors. It counts as a turn in the tenant's
/// limits, and what was used as the tenant's.
///
/// # Errors
/// `rate_limited`, `unavailable`; those of the database, when the tokens are counted.
pub async fn test(app: &Edge, caller: &Caller, slug: &str, endpoint: &Endpoint) -> Result<TestView> {
    let _running = asks(app, caller)?;
    let view = try_all(app, endpoint).await;
    count(app, caller, slug, &view).await?;
    Ok(view)
}

async fn count(app: &Edge, caller: &Caller, slug: &str, view: &TestView) -> Result<()> {
    if view.usage.llm_calls == 0 {
        return Ok(());
    }
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let Usage { llm_calls, prompt_tokens, cached_tokens, completion_tokens, .. } = view.usage;
    let used = json!([{
        "id": clock::id(), "profile": slug, "model": view.model, "llm_calls": i32::try_from(llm_calls).unwrap_or(i32::MAX),
        "prompt_tokens": number(prompt_tokens), "cached_tokens": number(cached_tokens),
        "completion_tokens": number(completion_tokens),
    }]);
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        sqlx::query("SELECT count_usage($1, NULL, 'test', NULL, NULL, $2)")
            .bind(tx.tenant())
            .bind(&used)
            .execute(&mut *tx.connection().await)
            .await?;
        Ok(())
    })
    .await
}

async fn try_all(app: &Edge, endpoint: &Endpoint) -> TestView {
    // What an earlier test or turn found is tried again.
    app.llm.client().forget(endpoint);
    let until = Instant::now() + app.llm.total_timeout(endpoint);
    let mut test = Test { app, endpoint: endpoint.clone(), until, usage: Usage::default(), checks: Vec::new() };
    test.answer_within(ANSWER_TOKENS);
    let mut supports = Supports::default();
    let Some((first, pieces)) = test.first_answer(&mut supports).await else {
        return TestView {
            model: endpoint.model.clone(),
            works: false,
            checks: test.checks,
            supports,
            usage: test.usage,
        };
    };
    test.streaming(&first, pieces, &mut supports);
    test.tools(&mut supports).await;
    test.json_schema(&mut supports).await;
    test.cache(&mut supports).await;
    TestView { model: first.model, works: true, checks: test.checks, supports, usage: test.usage }
}

struct Test<'a> {
    app: &'a Edge,
    endpoint: Endpoint,
    until: Instant,
    usage: Usage,
    checks: Vec<Check>,
}

impl Test<'_> {
    fn answer_within(&mut self, tokens: u32) {
        self.change(|options| {
            let limit = options.parameters.max_output_tokens.unwrap_or(tokens).min(tokens);
            options.parameters.max_output_tokens = Some(limit);
            (options.cannot_stream, options.cannot_count_streams) = (false, false);
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut CallOptions)) {
        let mut options = CallOptions::clone(&self.endpoint.options);
        change(&mut options);
        self.endpoint.options = Arc::new(options);
    }

    fn note(&mut self, name: CheckName, works: impl Into<Option<bool>>, seen: impl Into<String>) {
        let seen: String = seen.into().chars().take(SEEN_CHARS_MAX).collect();
        self.checks.push(Check { name, works: works.into(), seen });
    }

    /// An error in words. What the operator's endpoint says is the operator's.
    fn told(&self, error: &LlmError) -> String {
        let told = if self.endpoint.trusted { error.public_message() } else { error.to_string() };
        format!("{told}.")
    }

    async fn ask(&mut self, request: &ChatRequest<'_>) -> std::result::Result<Completion, LlmError> {
        let cancel = CancellationToken::new();
        let wait = QUESTION_WAIT.min(self.until.saturating_duration_since(Instant::now()));
        if wait.is_zero() {
            return Err(LlmError::Timeout { phase: TimeoutPhase::Total });
        }
        let answer = self.app.llm.client().complete_within(&self.endpoint, request, &cancel, wait).await?;
        self.usage += answer.usage;
        Ok(answer)
    }

    /// The first answer, as a stream, and in how many pieces its text came.
    async fn first_answer(&mut self, supports: &mut Supports) -> Option<(Completion, u32)> {
        let messages = [Message::text(Role::User, "Count from one to ten in words, and write nothing else.")];
        let pieces = Arc::new(AtomicU32::new(0));
        let heard = pieces.clone();
        let sink = Sink::new(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        });
        let request = ChatRequest { messages: &messages, sink: Some(&sink), ..ChatRequest::default() };
        match self.ask(&request).await {
            Ok(answer) => {
                supports.output_limit = Some(answer.output_limit);
                let is_empty = answer.text.trim().is_empty();
                let what = if is_empty { "The answer was empty" } else { "It answered" };
                let seen = format!("{what}. The output limit was sent as {}.", answer.output_limit.as_str());
                self.note(CheckName::Answer, !is_empty, seen);
                (!is_empty).then(|| (answer, pieces.load(Ordering::Relaxed)))
            }
            Err(error) => {
                self.note(CheckName::Answer, false, self.told(&error));
                None
            }
        }
    }

    fn streaming(&mut self, first: &Completion, pieces: u32, supports: &mut Supports) {
        supports.streaming = Some(pieces > 0);
        let seen = match pieces {
            0 => "The answer came as a whole.".to_owned(),
            1 => "The answer came as a stream of one piece.".to_owned(),
            n => format!("The answer came in {n} pieces."),
        };
        self.note(CheckName::Streaming, pieces > 0, seen);
        supports.stream_usage = Some(!first.usage.estimated);
        let seen = if first.usage.estimated {
            "The stream said nothing of tokens; they are estimated.".to_owned()
        } else {
            format!(
                "It counted {} prompt and {} answer tokens.",
                first.usage.prompt_tokens, first.usage.completion_tokens
            )
        };
        self.note(CheckName::StreamUsage, !first.usage.estimated, seen);
        let reasons = !first.reasoning.is_empty();
        supports.reasoning = Some(reasons);
        let seen = match first.reasoning.chars().count() {
            0 => "The answer came without reasoning.".to_owned(),
            n => format!("{n} characters of reasoning came beside the answer."),
        };
        self.note(CheckName::Reasoning, reasons, seen);
    }

    async fn tools(&mut self, supports: &mut Supports) {
        let tool = |name: &str, what: &str| {
            json!({ "type": "function", "function": { "name": name, "description": format!("Reports the {what}."), "parameters": {
                "type": "object", "properties": { "value": { "type": "string" } }, "required": ["value"] } } })
        };
        let tools = to_raw_value(&[tool("report_colour", "colour"), tool("report_number", "number")]).ok();
        let words = "Call report_colour with blue and report_number with seven, both in this one answer.";
        let messages = [Message::text(Role::User, words)];
        let request = ChatRequest {
            messages: &messages,
            tools: tools.as_deref(),
            tool_choice: Some(ToolChoice::Required),
            ..ChatRequest::default()
        };
        let mut answer = self.ask(&request).await;
        if answer.is_err() {
            // Some endpoints know tools, but not that a call can be required.
            answer = self.ask(&ChatRequest { tool_choice: None, ..request }).await;
        }
        let (works, parallel, seen) = match &answer {
            Ok(answer) => {
                let valid = |call: &&llm::WireToolCall| {
                    ["report_colour", "report_number"].contains(&call.name.as_str())
                        && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object())
                };
                let calls = answer.tool_calls.iter().filter(valid).count();
                (Some(calls > 0), Some(calls > 1), valid_calls(calls))
            }
            Err(error) => (verdict(error), verdict(error), self.told(error)),
        };
        (supports.tools, supports.parallel_tools) = (works, parallel);
        self.note(CheckName::Tools, works, seen.clone());
        self.note(CheckName::ParallelTools, parallel.filter(|_| works == Some(true)), seen);
    }

    async fn json_schema(&mut self, supports: &mut Supports) {
        let before = self.endpoint.options.clone();
        let schema = json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": {
            "type": "object", "properties": { "colour": { "type": "string" } }, "required": ["colour"], "additionalProperties": false } } });
        self.change(|options| drop(options.parameters.extra.insert("response_format".to_owned(), schema)));
        let messages = [Message::text(Role::User, "What colour is the sky on a clear day? Answer in JSON.")];
        let answer = self.ask(&ChatRequest { messages: &messages, ..ChatRequest::default() }).await;
        self.endpoint.options = before;
        let (works, seen) = match answer {
            Ok(answer) => {
                let value: Option<Value> = serde_json::from_str(answer.text.trim()).ok();
                let fits = value.is_some_and(|value| value.get("colour").is_some_and(Value::is_string));
                let seen = if fits { "The answer fits the schema." } else { "The answer does not fit the schema." };
                (Some(fits), seen.to_owned())
            }
            Err(error) => (verdict(&error), self.told(&error)),
        };
        supports.json_schema = works;
        self.note(CheckName::JsonSchema, works, seen);
    }

    /// Asks the same long prompt twice.
    async fn cache(&mut self, supports: &mut Supports) {
        let long = "The harbour of Port Town has nine piers, and each of them belongs to another guild. "
            .repeat(CACHED_SENTENCES);
        let messages =
            [Message::text(Role::System, long), Message::text(Role::User, "How many piers? Answer with one word.")];
        let request = ChatRequest { messages: &messages, ..ChatRequest::default() };
        let mut cached = 0;
        for _ in 0..2 {
            match self.ask(&request).await {
                Ok(answer) => cached = answer.usage.cached_tokens,
                Err(error) => {
                    self.note(CheckName::CachedTokens, None, self.told(&error));
                    return;
                }
            }
        }
        supports.cached_tokens = Some(cached > 0);
        self.note(
            CheckName::CachedTokens,
            cached > 0,
            format!("The second of two equal prompts had {cached} cached tokens."),
        );
    }
}

fn valid_calls(calls: usize) -> String {
    match calls {
        0 => "The answer had no valid tool call.".to_owned(),
        1 => "The answer had one valid tool call.".to_owned(),
        n => format!("The answer had {n} valid tool calls."),
    }
}

/// Whether a failure shows that something does not work: the endpoint rejected the request. Another failure shows nothing.
fn verdict(error: &LlmError) -> Option<bool> {
    matches!(error, LlmError::Unavailable { status: Some(400 | 404 | 422), .. }).then_some(false)
}
