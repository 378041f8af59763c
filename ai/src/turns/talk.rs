//! A turn's conversation with its model: requests, answers, calls and cost. Used by all kinds of turns.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json, value::RawValue};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    ask,
    calls::{self, Hands},
    clean::{Cleaner, Removed},
    cx::{Cx, Start},
    live::Speech,
    running::Asker,
    store::{self, Ended, NewTurn},
    subject::Subject,
    view::{CallStatus, LlmCall, Status, Timings, ToolCall, Trace, TurnView},
};
use crate::{
    prompt::fence,
    state::Ai,
    tools::{self, Rest},
};
use base::{
    clock::millis,
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::{Actor, Origin};
use edge::{caller::Caller, http::idempotency::IdempotencyKey, models::Choice, tenants::tasks::Task};
use llm::{ChatRequest, Completion, Ending, Message, ReplyMode, Role, Usage, reply};
use world::messages::service::NewMessage;

/// The most bytes of everything that a model says in one turn.
const NARRATIVES_BYTES_MAX: usize = 256 * 1024;
/// The most removals from its texts that a turn's trace lists.
const REMOVED_MAX: usize = 50;
/// How often a turn's events are saved while the model writes.
const SAVE_EVERY: Duration = Duration::from_millis(250);

/// The conversation of a turn in progress.
pub struct Talk<'a> {
    pub app: &'a Ai,
    pub caller: &'a Caller,
    pub subject: Subject,
    /// What the model is asked for.
    pub task: Task,
    /// The model that answers.
    pub choice: Arc<Choice>,
    pub mode: ReplyMode,
    pub asker: &'a Asker,
    /// The turn's id.
    pub id: Uuid,
    steps_max: u32,
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
    pub(crate) fn new(
        &Cx { app, caller, asker, .. }: &Cx<'a>,
        subject: Subject,
        (task, choice): (Task, Arc<Choice>),
        mode: ReplyMode,
        start: Start,
    ) -> Self {
        if let Some(live) = &asker.live {
            live.is_of(subject.kind);
        }
        Self {
            app,
            caller,
            subject,
            model: choice.endpoint.model.clone(),
            task,
            choice,
            mode,
            asker,
            id: start.id,
            steps_max: app.settings.turns.steps_max,
            started: start.at,
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
            let completion = match self.ask(question, &more, speech.as_ref()).await {
                // The results of the calls have filled the model's context.
                Err(error) if error.code == Code::PromptTooLarge && !more.is_empty() => {
                    return Ok(Status::LimitReached);
                }
                answer => answer?,
            };
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
            let actor = self.actor();
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

    /// The turn as clients see it, as far as this conversation knows it.
    #[must_use]
    pub fn view(&self, status: Status) -> TurnView {
        TurnView {
            model: self.model.clone(),
            tool_calls: self.tool_calls.clone(),
            ending: self.ending,
            parse_error: self.parse_error.clone(),
            usage: self.usage,
            timings_ms: self.timings(),
            ..TurnView::new(self.id, &self.subject, status)
        }
    }

    /// What the record keeps of this conversation. `turn_text` is the turn's own message, without the action.
    #[must_use]
    pub fn trace(&self, turn_text: String) -> Trace<'_> {
        Trace {
            player_id: self.subject.player,
            turn_text,
            llm_calls: &self.llm_calls,
            removed: &self.removed,
            ..Trace::default()
        }
    }

    /// The turn's row, without what only some kinds of turns have.
    #[must_use]
    pub fn row<'r>(&self, action: &'r str, key: Option<&'r IdempotencyKey>) -> NewTurn<'r>
    where
        'a: 'r,
    {
        let instance = self.app.running.instance;
        let live = self.asker.live.as_deref();
        NewTurn { mode: self.mode, key, live, ..NewTurn::new(self.id, self.subject, action, self.caller, instance) }
    }

    /// The turn as the author of changes.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.caller.actor().in_turn(self.id, Origin::Turn)
    }

    /// Commits the end of the turn: its answer and record, its messages, and the rest of its work.
    ///
    /// # Errors
    /// As for [`store::finish`].
    pub async fn end(&self, row: &NewTurn<'_>, ended: Ended<'_>, messages: &[NewMessage], rest: Rest) -> Result<()> {
        self.app.running.ends(self.id);
        store::finish(&self.app.pool, &self.actor(), row, &ended, messages, rest).await?;
        metrics::TURNS.with_label_values(&[self.subject.kind.as_str(), ended.status.as_str()]).inc();
        Ok(())
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

/// Adds the model's reply and the results of its calls to the messages for the next call.
pub(super) fn answer_calls(more: &mut Vec<Message>, completion: Completion, done: &[ToolCall], mode: ReplyMode) {
    let outcome = |call: &ToolCall| -> Value {
        match (&call.result, &call.error) {
            (Some(result), _) => result.clone(),
            (None, error) => json!({ "error": error }),
        }
    };
    match mode {
        ReplyMode::Native => {
            let mut reply = Message::reply(completion);
            // The names that the model reads in its list of tools.
            for (call, done) in reply.tool_calls.iter_mut().zip(done) {
                call.name.clone_from(&done.name);
            }
            more.push(reply);
            more.extend(done.iter().map(|call| {
                // The results were written by others, so they are fenced even if the provider separates them.
                let mut text = String::new();
                let attributes = [("tool", call.name.as_str()), ("status", call.status.as_str())];
                fence::put(&mut text, "tool_result", &attributes, &outcome(call).to_string());
                Message::tool_result(call.id.clone(), text)
            }));
        }
        ReplyMode::Xml => {
            let results: Vec<_> =
                done.iter().map(|c| json!({ "tool_name": c.name, "status": c.status, "result": outcome(c) })).collect();
            let mut text = String::new();
            fence::put(&mut text, "tool_results", &[], &Value::Array(results).to_string());
            more.push(Message::assistant(completion.text, Vec::new()));
            more.push(Message::text(Role::User, text));
        }
    }
}
