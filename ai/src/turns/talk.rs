//! A turn's conversation with its model: requests, answers, calls and cost. Used by all kinds of turns.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::value::{RawValue, to_raw_value};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    ask,
    calls::{self, Hands},
    clean::{Cleaner, Removed},
    live::Speech,
    runner::{answer_calls, millis},
    running::Asker,
    store::{self, Failure},
    view::{CallStatus, LlmCall, PromptView, Status, Timings, ToolCall, Trace, TurnView, created_at},
};
use crate::{
    state::Ai,
    tools::{self, shorten::shorten},
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::Origin;
use edge::{caller::Caller, http::Reply, models::Choice, tenants::tasks::Task};
use llm::{ChatRequest, Completion, Ending, Message, ReplyMode, Usage, reply};

/// The most bytes of everything that a model says in one turn.
const NARRATIVES_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of a turn's answer, and of its trace. Its record has no more than both.
const VIEW_BYTES_MAX: usize = 1024 * 1024;
const TRACE_BYTES_MAX: usize = 1024 * 1024;
/// The most removals from its texts that a turn's trace lists.
const REMOVED_MAX: usize = 50;
/// How often a turn's events are saved while the model writes.
const SAVE_EVERY: Duration = Duration::from_millis(250);

/// The conversation of a turn in progress.
pub struct Talk<'a> {
    pub app: &'a Ai,
    pub caller: &'a Caller,
    /// What the model is asked for.
    pub task: Task,
    /// The model that answers.
    pub choice: Arc<Choice>,
    pub mode: ReplyMode,
    pub asker: &'a Asker,
    /// The turn's id.
    pub id: Uuid,
    steps_max: u32,
    pub created_at: OffsetDateTime,
    pub started: Instant,
    in_model: Duration,
    pub model: String,
    narratives: Vec<String>,
    pub tool_calls: Vec<ToolCall>,
    /// How the last answer ended.
    pub ending: Option<Ending>,
    pub parse_error: Option<String>,
    pub usage: Usage,
    pub llm_calls: Vec<LlmCall>,
    /// The campaign's rules for the model's texts, and what they removed.
    pub cleaner: Option<Cleaner>,
    pub removed: Vec<Removed>,
}

/// The request to a model.
pub struct Question<'p> {
    pub messages: &'p [Message],
    pub tools: Option<&'p RawValue>,
    pub cache_key: &'p str,
}

impl<'a> Talk<'a> {
    /// A conversation that has not begun.
    pub fn new(
        app: &'a Ai,
        caller: &'a Caller,
        (task, choice): (Task, Arc<Choice>),
        mode: ReplyMode,
        asker: &'a Asker,
        (id, started): (Uuid, Instant),
    ) -> Self {
        Self {
            app,
            caller,
            model: choice.endpoint.model.clone(),
            task,
            choice,
            mode,
            asker,
            id,
            steps_max: app.settings.turns.steps_max,
            created_at: created_at(id),
            started,
            in_model: Duration::ZERO,
            narratives: Vec::new(),
            tool_calls: Vec::new(),
            ending: None,
            parse_error: None,
            usage: Usage::default(),
            llm_calls: Vec::new(),
            cleaner: None,
            removed: Vec::new(),
        }
    }

    /// The same with fewer model calls than the operator allows.
    #[must_use]
    pub fn at_most(mut self, steps: Option<u32>) -> Self {
        self.steps_max = steps.unwrap_or(self.steps_max).min(self.steps_max);
        self
    }

    /// Model, tools, model … until the model has nothing more to do or the limit of steps is reached.
    ///
    /// # Errors
    /// `llm_unavailable`, also if the model says and does nothing; `llm_timeout`, `conflict` if the turn is no longer this server's.
    pub async fn run(&mut self, question: &Question<'_>, hands: &Hands<'_>) -> Result<Status> {
        let mut more: Vec<Message> = Vec::new();
        for _ in 0..self.steps_max {
            let speech = self.asker.live.as_ref().map(|live| Speech::new(live, self.mode, !self.narratives.is_empty()));
            let completion = self.ask(question, &more, speech.as_ref()).await?;
            let parsed = match self.mode {
                ReplyMode::Native => reply::parse_native(&completion),
                ReplyMode::Xml => reply::parse_text(&completion.text),
            };
            let narrative = parsed.narrative.trim();
            let says_nothing = narrative.is_empty() && parsed.calls.is_empty() && parsed.parse_error.is_none();
            if says_nothing && self.narratives.is_empty() && self.tool_calls.is_empty() {
                return Err(silence(&completion));
            }
            self.ending = Some(if parsed.narrative_cut { Ending::Truncated } else { completion.ending() });
            if let Some(speech) = speech {
                speech.finish(narrative);
            }
            if !narrative.is_empty() {
                self.say(narrative, completion.was_cut());
            }
            if let Some(error) = parsed.parse_error {
                metrics::PARSE_ERRORS.inc();
                self.parse_error = Some(error);
            }
            if parsed.calls.is_empty() {
                return Ok(Status::Succeeded);
            }
            let actor = self.caller.actor().in_turn(self.id, Origin::Turn);
            let (calls, before) = (&parsed.calls, &self.tool_calls);
            let done = Box::pin(calls::execute(self.app, &actor, self.id, hands, calls, before, self.asker)).await?;
            let goes_on = self.mode == ReplyMode::Native
                || done
                    .iter()
                    .any(|c| c.status != CallStatus::Succeeded || tools::find(&c.name).is_some_and(|t| t.informs));
            if goes_on {
                answer_calls(&mut more, completion, &done, self.mode);
            }
            self.tool_calls.extend(done);
            if !goes_on {
                return Ok(Status::Succeeded);
            }
        }
        Ok(Status::LimitReached)
    }

    async fn ask(&mut self, question: &Question<'_>, more: &[Message], speech: Option<&Speech>) -> Result<Completion> {
        let sink = speech.map(Speech::sink);
        let request = ChatRequest {
            prefix: question.messages,
            messages: more,
            tools: question.tools,
            prompt_cache_key: Some(question.cache_key),
            sink: sink.as_ref(),
            ..ChatRequest::default()
        };
        let choice = self.choice.clone();
        let answer = ask::ask(self.app, self.task, &choice, &request, &self.asker.cancel);
        let (completion, call) = if sink.is_some() {
            let mut answer = std::pin::pin!(answer);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answer => break answer?,
                    () = sleep(SAVE_EVERY) => self.save_told().await,
                }
            }
        } else {
            answer.await?
        };
        self.note(&completion, call);
        Ok(completion)
    }

    /// Asks a model for one answer to a task, which the caller parses.
    ///
    /// # Errors
    /// `llm_unavailable`, `llm_timeout`.
    pub async fn ask_once(&mut self, task: Task, choice: &Choice, request: &ChatRequest<'_>) -> Result<Completion> {
        let (completion, call) = ask::ask(self.app, task, choice, request, &self.asker.cancel).await?;
        self.note(&completion, call);
        Ok(completion)
    }

    /// Takes the model that was chosen after the turn began, and corrects the turn's record if it replies in another way.
    ///
    /// # Errors
    /// Those of the choice, and database errors.
    pub async fn choose_again(&mut self, choice: Result<Arc<Choice>>, asked: Option<ReplyMode>) -> Result<()> {
        let choice = choice?;
        let mode = asked.unwrap_or(choice.mode);
        if mode != self.mode {
            store::set_reply_mode(&self.app.pool, &self.caller.actor(), self.id, mode).await?;
        }
        self.mode = mode;
        self.take(choice);
        Ok(())
    }

    /// Takes the model that answers from now on.
    pub fn take(&mut self, choice: Arc<Choice>) {
        self.model.clone_from(&choice.endpoint.model);
        self.choice = choice;
    }

    /// Counts and records an answer of the model.
    pub fn note(&mut self, completion: &Completion, call: LlmCall) {
        self.in_model += completion.latency;
        self.usage += completion.usage;
        self.model.clone_from(&completion.model);
        self.llm_calls.push(call);
    }

    /// Saves the turn's events, for listeners on other servers. Before a turn ends, all of them.
    pub async fn save_told(&self) {
        if let Some(live) = &self.asker.live {
            store::save_told(&self.app.pool, &self.caller.actor(), self.id, live).await;
        }
    }

    /// Cleans the model's text and keeps it, as far as a turn has room for it.
    fn say(&mut self, narrative: &str, was_cut: bool) {
        let cleaned = self.cleaner.as_ref().map(|cleaner| cleaner.clean(narrative, was_cut));
        let (narrative, removed) = cleaned.unwrap_or((Cow::Borrowed(narrative), Vec::new()));
        self.removed.extend(removed);
        self.removed.truncate(REMOVED_MAX);
        let said: usize = self.narratives.iter().map(String::len).sum();
        let room = NARRATIVES_BYTES_MAX.saturating_sub(said);
        if room > 0 {
            self.narratives.push(narrative.get(..narrative.floor_char_boundary(room)).unwrap_or_default().to_owned());
        }
    }

    /// Says words that an author wrote. No model is asked.
    pub fn recite(&mut self, words: &str) {
        if let Some(live) = &self.asker.live {
            Speech::new(live, ReplyMode::Native, false).finish(words);
        }
        self.model.clear();
        self.ending = Some(Ending::Complete);
        self.narratives.push(words.to_owned());
    }

    /// Everything that the model said, in order.
    #[must_use]
    pub fn narrative(&self) -> String {
        self.narratives.join("\n\n")
    }

    /// Where the time went so far.
    #[must_use]
    pub fn timings(&self) -> Timings {
        let total = self.started.elapsed();
        Timings {
            total: millis(total),
            llm: millis(self.in_model),
            server: millis(total.saturating_sub(self.in_model)),
        }
    }

    /// The turn as clients see it, with the fields of all kinds of turns and without text.
    #[must_use]
    pub fn view(&self, kind: &'static str, status: Status, campaign: Uuid, player: Uuid) -> TurnView {
        TurnView {
            id: self.id,
            kind,
            status,
            campaign_id: campaign,
            entity_id: player,
            player_id: Some(player),
            model: self.model.clone(),
            narrative: String::new(),
            tool_calls: self.tool_calls.clone(),
            narration: None,
            planned: None,
            mechanics: None,
            ending: self.ending,
            parse_error: self.parse_error.clone(),
            role: None,
            context: None,
            dice_unused: None,
            prompt: None,
            parent_turn_id: None,
            usage: self.usage,
            timings_ms: self.timings(),
            created_at: self.created_at,
        }
    }

    /// Whether the turn was lost because somebody cancelled it through another replica.
    async fn was_cancelled_elsewhere(&self, error: &Error) -> bool {
        let asked = store::cancel_requested(&self.app.pool, self.caller.tenant_id(), self.id);
        error.code == Code::Conflict && asked.await.unwrap_or(false)
    }

    /// Ends the turn without success and reverts its effects. `written` returns its answer and its record.
    ///
    /// # Errors
    /// `error`, with the turn's id, unless the turn was cancelled.
    pub async fn give_up(
        &self,
        kind: &'static str,
        error: Error,
        body_and_record: impl FnOnce(Status) -> Result<(Vec<u8>, String)>,
    ) -> Result<Reply> {
        self.save_told().await;
        if let Some(cause) = error.cause() {
            tracing::warn!(turn_id = %self.id, code = error.code.as_str(), %cause, "a turn failed");
        }
        let cancelled = self.asker.cancel.is_cancelled() || self.was_cancelled_elsewhere(&error).await;
        let status = if cancelled { Status::Cancelled } else { Status::Failed };
        let (code, message) = if cancelled {
            ("cancelled", "The turn was cancelled.")
        } else {
            (error.code.as_str(), error.detail.as_str())
        };
        let (body, record) = body_and_record(status)?;
        let failure = Failure { status, code, message, record: Some(record), calls: &self.llm_calls };
        self.fail(&failure).await;
        metrics::TURNS.with_label_values(&[kind, status.as_str()]).inc();
        if cancelled {
            return Ok(Reply { status: 200, body, ..Reply::default() });
        }
        Err(error.for_turn(self.id))
    }

    /// Ends a turn that failed before it had a prompt.
    ///
    /// # Errors
    /// `error`, with the turn's id.
    pub async fn never_asked(&self, kind: &'static str, error: Error) -> Result<Reply> {
        let failure = Failure {
            status: Status::Failed,
            code: error.code.as_str(),
            message: &error.detail,
            record: None,
            calls: &[],
        };
        self.fail(&failure).await;
        metrics::TURNS.with_label_values(&[kind, Status::Failed.as_str()]).inc();
        Err(error.for_turn(self.id))
    }

    async fn fail(&self, failure: &Failure<'_>) {
        let (pool, instance) = (&self.app.pool, self.app.running.instance);
        if let Err(error) = store::fail(pool, &self.caller.actor(), self.id, instance, failure).await {
            tracing::error!(turn_id = %self.id, %error, "could not close a failed turn; the sweeper will");
        }
    }

    /// Logs and counts that the turn ended.
    pub fn ended(&self, kind: &'static str, result: &Result<Reply>, cache_hit: bool) {
        let took = self.started.elapsed();
        metrics::TURN_SECONDS.with_label_values(&[kind]).observe(took.as_secs_f64());
        let outcome = result.as_ref().map_or_else(|e| e.code.as_str(), |_| "answered");
        tracing::info!(
            request_id = %self.caller.request, turn_id = %self.id, kind, outcome, cache_hit,
            llm_calls = self.usage.llm_calls, tool_calls = self.tool_calls.len(), ms = millis(took), "turn ended"
        );
    }
}

/// Why a turn whose model says and does nothing has failed.
fn silence(completion: &Completion) -> Error {
    let thought = completion.ends_in_thought || !completion.reasoning.is_empty();
    let why = match completion.ending() {
        Ending::Truncated if thought => {
            "The model reached its output limit before it had thought to the end. Raise max_output_tokens, or let it reason less."
        }
        Ending::Truncated => "The model reached its output limit before it said anything. Raise max_output_tokens.",
        Ending::ContentFiltered => "The provider's filter withheld the model's answer.",
        Ending::Complete if thought => "The model thought, and then said nothing.",
        Ending::Complete => "The model's answer was empty.",
    };
    Error::new(Code::LlmUnavailable, why)
}

/// The answer's body, and the record that contains it together with the trace. Players do not see the prompt, but the record has
/// it.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn body_and_record(view: &TurnView, hidden: Option<PromptView>, trace: &Trace<'_>) -> Result<(Vec<u8>, String)> {
    #[derive(serde::Serialize)]
    struct Record<'a> {
        view: &'a RawValue,
        /// The prompt, if the view has none because it is a player's.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptView>,
        trace: &'a RawValue,
    }
    let body = whole_or_short(view)?;
    let raw = serde_json::from_str::<&RawValue>(&body).map_err(Error::internal)?;
    let mut told = to_raw_value(trace).map_err(Error::internal)?;
    if told.get().len() > TRACE_BYTES_MAX {
        let whole = serde_json::to_value(trace).map_err(Error::internal)?;
        told = to_raw_value(&shorten(whole, TRACE_BYTES_MAX)).map_err(Error::internal)?;
    }
    let record = serde_json::to_string(&Record { view: raw, prompt: hidden, trace: &told }).map_err(Error::internal)?;
    Ok((body.into_bytes(), record))
}

/// The answer. If it is too large, its calls share the available room.
fn whole_or_short(view: &TurnView) -> Result<String> {
    let body = serde_json::to_string(view).map_err(Error::internal)?;
    if body.len() <= VIEW_BYTES_MAX || view.tool_calls.is_empty() {
        return Ok(body);
    }
    let mut view = view.clone();
    let share = VIEW_BYTES_MAX / 2 / (2 * view.tool_calls.len());
    for call in &mut view.tool_calls {
        call.arguments = shorten(call.arguments.take(), share);
        call.result = call.result.take().map(|result| shorten(result, share));
    }
    serde_json::to_string(&view).map_err(Error::internal)
}
