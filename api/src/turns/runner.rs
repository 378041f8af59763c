//! One turn, from names to an answer.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json, value::RawValue};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    CallStatus, Job, LlmCall, Mechanics, OnBusy, PromptView, SectionView, Status, Timings, ToolCall, Trace, TurnView,
    ask, calls, rules,
    store::{self, Ended, Failure, NewTurn, Opened, Said},
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    error::{Code, Error, Result},
    http::Reply,
    llm::{ChatRequest, Completion, Endpoint, Message, ReplyMode, Role, Usage, reply},
    ops::metrics,
    prompt::{
        assemble::{Assembled, BasePrompt, TurnText, Wanted, assemble, cached, turn_text},
        section::Section,
        tokens,
        transcript::{Exchange, Transcript},
    },
    tenancy::{Origin, TenantTx},
    tools,
};

/// How long a queued turn waits for the one before it.
const QUEUE_WAIT: Duration = Duration::from_secs(60);
const QUEUE_POLL: Duration = Duration::from_millis(25);
/// How often the conversation may move on before a turn has its place.
const MOVES_MAX: u32 = 5;

/// Runs a turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &App, caller: &Caller, job: &Job, cancel: CancellationToken) -> Result<Reply> {
    let endpoint = app.llm.endpoint(&caller.tenant, &app.secrets)?;
    match job.on_busy {
        OnBusy::Reject => unless_abandoned(app, caller, job, &endpoint, cancel).await,
        OnBusy::Queue => queued(app, caller, job, &endpoint, cancel).await,
    }
}

/// Tries once, and once more if what stood in the way was a turn whose server is gone.
async fn unless_abandoned(
    app: &App,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    cancel: CancellationToken,
) -> Result<Reply> {
    match attempt(app, caller, job, endpoint, cancel.clone()).await {
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if store::sweep(&app.pool).await? == 0 {
                return Err(e);
            }
            attempt(app, caller, job, endpoint, cancel).await
        }
        result => result,
    }
}

/// Waits for one's place: in order within this process, by polling across processes.
async fn queued(
    app: &App,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    cancel: CancellationToken,
) -> Result<Reply> {
    let names =
        [job.campaign.as_str(), &job.entity, &job.player].map(|n| Uuid::new_v5(&caller.tenant_id(), n.as_bytes()));
    let queue = app.running.queue(Uuid::new_v5(&names[0], names[1].as_bytes()), names[2]);
    let busy = || Error::new(Code::TurnInProgress, "The turn before this one did not end in time.");
    let started = Instant::now();
    let _place = tokio::select! {
        place = timeout(QUEUE_WAIT, queue.lock()) => place.map_err(|_| busy())?,
        () = cancel.cancelled() => return Err(Error::new(Code::Conflict, "The turn was cancelled while it waited.")),
    };
    loop {
        match unless_abandoned(app, caller, job, endpoint, cancel.clone()).await {
            Err(e) if e.code == Code::TurnInProgress && started.elapsed() < QUEUE_WAIT => {
                tokio::select! {
                    () = sleep(QUEUE_POLL) => {}
                    () = cancel.cancelled() => return Err(e),
                }
            }
            result => return result,
        }
    }
}

/// A turn under way.
struct Turn<'a> {
    app: &'a App,
    caller: &'a Caller,
    job: &'a Job,
    endpoint: &'a Endpoint,
    id: Uuid,
    base: Arc<BasePrompt>,
    hit: bool,
    transcript: Arc<Transcript>,
    text: TurnText,
    mechanics: Option<Mechanics>,
    created_at: OffsetDateTime,
    started: Instant,
    in_model: Duration,
    model: String,
    narratives: Vec<String>,
    tool_calls: Vec<ToolCall>,
    parse_error: Option<String>,
    usage: Usage,
    llm_calls: Vec<LlmCall>,
}

/// Takes the entity's place and runs. If another turn ended between the reading of the conversation and the taking of
/// the place, the conversation is read again.
async fn attempt(
    app: &App,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    cancel: CancellationToken,
) -> Result<Reply> {
    for _ in 0..MOVES_MAX {
        if let Some(reply) = attempt_once(app, caller, job, endpoint, cancel.clone()).await? {
            return Ok(reply);
        }
    }
    Err(Error::new(Code::TurnInProgress, "This entity is already answering this player."))
}

/// None if the conversation moved on before the turn had its place.
async fn attempt_once(
    app: &App,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    cancel: CancellationToken,
) -> Result<Option<Reply>> {
    let started = Instant::now();
    let id = Uuid::now_v7();
    let actor = caller.actor().in_turn(id, Origin::Turn);
    let wanted =
        Wanted { campaign: &job.campaign, kind: job.kind, entity: &job.entity, player: &job.player, mode: job.mode };
    let mechanics = match job.mechanics {
        Some(turn) => Some(rules::mechanics(app, caller, &job.campaign, &job.player, turn).await?),
        None => None,
    };
    let begin = |assembled| Turn::begin(app, caller, job, endpoint, (id, started), mechanics.clone(), assembled);
    let mut opened = None;
    // A tenant with a quota of tokens has it looked at first.
    if caller.tenant.limits.tokens_per_day == 0
        && let Some(base) = cached(&app.prompts, caller, &wanted)
    {
        let turn = begin(Assembled { base, hit: true });
        if store::open_cached(&app.pool, &actor, &turn.row(), &turn.base).await? {
            opened = Some(turn);
        }
    }
    let mut turn = match opened {
        Some(turn) => {
            metrics::PROMPT_CACHE.with_label_values(&["hit"]).inc();
            turn
        }
        None => {
            let tx = TenantTx::write_lazily(&app.pool, &actor).await?;
            let assembled = assemble(&app.prompts, &tx, caller, &wanted).await?;
            app.limits.check_tokens(&tx, &caller.tenant).await?;
            let mut turn = begin(assembled);
            match store::open(&tx, &turn.row()).await? {
                Opened::Replay(reply) => return Ok(Some(reply)),
                Opened::Runs(id) => turn.id = id,
                Opened::Moved => return Ok(None),
            }
            tx.commit().await?;
            turn
        }
    };
    let _entered = app.running.enter(turn.id, cancel.clone());
    let outcome = turn.talk(&cancel).await;
    let result = match outcome {
        Ok(status) => turn.finish(status).await,
        Err(error) => Err(error),
    };
    let result = match result {
        Ok(reply) => Ok(reply),
        Err(error) => turn.give_up(error, &cancel).await,
    };
    let took = started.elapsed();
    metrics::TURN_SECONDS.with_label_values(&[job.kind.as_str()]).observe(took.as_secs_f64());
    let outcome = result.as_ref().map_or_else(|e| e.code.as_str(), |_| "answered");
    tracing::info!(
        request_id = %caller.request, turn_id = %turn.id, kind = job.kind.as_str(), outcome, cache_hit = turn.hit,
        llm_calls = turn.usage.llm_calls, tool_calls = turn.tool_calls.len(), ms = millis(took), "turn ended"
    );
    result.map(Some)
}

impl<'a> Turn<'a> {
    fn begin(
        app: &'a App,
        caller: &'a Caller,
        job: &'a Job,
        endpoint: &'a Endpoint,
        (id, started): (Uuid, Instant),
        mechanics: Option<Mechanics>,
        Assembled { base, hit }: Assembled,
    ) -> Self {
        let transcript = base.transcript.within(Section::History.budget_in(&base.cast.settings));
        let text = turn_text(&base, &transcript, &job.action, mechanics.as_ref().map(|m| m.raw.as_str()));
        Self {
            mechanics,
            app,
            caller,
            job,
            endpoint,
            id,
            base,
            hit,
            transcript,
            text,
            created_at: clock::now(),
            started,
            in_model: Duration::ZERO,
            model: endpoint.model.clone(),
            narratives: Vec::new(),
            tool_calls: Vec::new(),
            parse_error: None,
            usage: Usage::default(),
            llm_calls: Vec::new(),
        }
    }

    fn row(&self) -> NewTurn<'a> {
        NewTurn {
            id: self.id,
            campaign: self.base.key.campaign,
            kind: self.job.kind.as_str(),
            entity: self.base.key.entity,
            player: self.base.key.player,
            action: &self.job.action,
            mode: self.job.mode,
            on_failure: self.job.on_failure,
            key_id: self.caller.key,
            instance: self.app.running.instance,
            key: self.job.key.as_ref(),
            talk_version: self.base.transcript.version,
        }
    }

    /// Model, tools, model … until the model has no more to do or the limit of steps is reached.
    async fn talk(&mut self, cancel: &CancellationToken) -> Result<Status> {
        let messages = self.base.messages(&self.transcript, self.text.text.clone());
        let mut more: Vec<Message> = Vec::new();
        for _ in 0..self.app.config.turn_steps_max {
            let completion = self.ask(&messages, &more, cancel).await?;
            let parsed = match self.job.mode {
                ReplyMode::Native => reply::parse_native(&completion),
                ReplyMode::Xml => reply::parse_text(&completion.text),
            };
            if !parsed.narrative.trim().is_empty() {
                self.narratives.push(parsed.narrative.trim().to_owned());
            }
            if let Some(error) = parsed.parse_error {
                metrics::PARSE_ERRORS.inc();
                self.parse_error = Some(error);
            }
            if parsed.calls.is_empty() {
                return Ok(Status::Succeeded);
            }
            let actor = self.caller.actor().in_turn(self.id, Origin::Turn);
            let first = self.tool_calls.len();
            let done = calls::execute(self.app, &actor, self.id, &self.base.cast, &parsed.calls, first).await?;
            let goes_on = self.job.mode == ReplyMode::Native
                || done
                    .iter()
                    .any(|c| c.status != CallStatus::Succeeded || tools::find(&c.name).is_some_and(|t| t.informs));
            if goes_on {
                answer_calls(&mut more, completion, &done, self.job.mode);
            }
            self.tool_calls.extend(done);
            if !goes_on {
                return Ok(Status::Succeeded);
            }
        }
        Ok(Status::LimitReached)
    }

    async fn ask(&mut self, messages: &[Message], more: &[Message], cancel: &CancellationToken) -> Result<Completion> {
        let request = ChatRequest {
            prefix: messages,
            messages: more,
            tools: self.base.tools.as_deref(),
            prompt_cache_key: Some(&self.base.cache_key),
            ..ChatRequest::default()
        };
        let (completion, call) = ask::ask(self.app, self.endpoint, &request, cancel).await?;
        self.in_model += completion.latency;
        self.usage += completion.usage;
        self.model.clone_from(&completion.model);
        self.llm_calls.push(call);
        Ok(completion)
    }

    /// Commits the answer: messages, record, usage, key.
    async fn finish(&mut self, status: Status) -> Result<Reply> {
        let narrative = self.narratives.join("\n\n");
        let narrative_tokens = tokens::count(&narrative);
        let (body, record) = self.written(status, &narrative)?;
        let row = self.row();
        let player_message = Uuid::now_v7();
        let cost_micros = self.cost_micros();
        let ended = Ended { status, record, model: &self.model, usage: &self.usage, cost_micros, body: &body };
        let said = Said {
            player_message,
            player_name: &self.base.cast.player.name,
            entity_name: &self.base.cast.entity.name,
            action: &self.job.action,
            prompt_text: &self.text.text,
            user_tokens: self.text.tokens,
            narrative: &narrative,
            narrative_tokens,
            window_start: self.transcript.exchanges.first().map_or(player_message, |e| e.id),
        };
        let mut attempts_left = 3;
        let actor = self.caller.actor().in_turn(self.id, Origin::Turn);
        loop {
            match store::finish(&self.app.pool, &actor, &row, &ended, Some(&said)).await {
                Err(e) if Error::is_transient(&e) && attempts_left > 1 => attempts_left -= 1,
                result => break result?,
            }
        }
        metrics::TURNS.with_label_values(&[self.job.kind.as_str(), status.as_str()]).inc();
        self.remember(player_message, narrative, narrative_tokens);
        Ok(Reply { status: 200, body, ..Reply::default() })
    }

    /// Puts the exchange into the cached prompt. The turn's transaction raised the conversation's head by one; if another
    /// did meanwhile, the head is above what is remembered here, and the next turn reads the conversation again.
    fn remember(&self, id: Uuid, narrative: String, narrative_tokens: u32) {
        let version = self.base.transcript.version + 1;
        let exchange = Exchange {
            id,
            said: self.job.action.as_str().into(),
            user: self.text.text.clone(),
            assistant: narrative.into(),
            tokens: self.text.tokens.saturating_add(narrative_tokens),
        };
        let next = self.base.after(self.transcript.with(exchange, version));
        self.app.prompts.base.put(self.caller.tenant_id(), self.base.key, Arc::new(next));
    }

    /// Whether the turn was lost because another replica was asked to cancel it.
    async fn was_cancelled_elsewhere(&self, error: &Error) -> bool {
        let asked = store::cancel_requested(&self.app.pool, self.caller.tenant_id(), self.id);
        error.code == Code::Conflict && asked.await.unwrap_or(false)
    }

    /// Ends the turn without success; what it did is taken back.
    async fn give_up(&self, error: Error, cancel: &CancellationToken) -> Result<Reply> {
        let cancelled = cancel.is_cancelled() || self.was_cancelled_elsewhere(&error).await;
        let status = if cancelled { Status::Cancelled } else { Status::Failed };
        let (code, message) = if cancelled {
            ("cancelled", "The turn was cancelled.")
        } else {
            (error.code.as_str(), error.detail.as_str())
        };
        let (body, record) = self.written(status, &self.narratives.join("\n\n"))?;
        let failure = Failure {
            status,
            code,
            message,
            record: Some(record),
            model: &self.model,
            usage: &self.usage,
            cost_micros: self.cost_micros(),
        };
        let ended =
            store::fail(&self.app.pool, &self.caller.actor(), self.id, self.app.running.instance, &failure).await;
        if let Err(e) = ended {
            tracing::error!(turn_id = %self.id, error = %e, "a failed turn could not be closed; the sweeper will");
        }
        metrics::TURNS.with_label_values(&[self.job.kind.as_str(), status.as_str()]).inc();
        if cancelled {
            return Ok(Reply { status: 200, body, ..Reply::default() });
        }
        Err(error.for_turn(self.id))
    }

    fn cost_micros(&self) -> Option<u64> {
        self.caller.tenant.settings.llm.prices.map(|p| p.cost_micros(&self.usage))
    }

    /// The answer's body, and the record that holds it together with the trace.
    fn written(&self, status: Status, narrative: &str) -> Result<(Vec<u8>, String)> {
        let total = self.started.elapsed();
        let view = TurnView {
            id: self.id,
            kind: self.job.kind.as_str(),
            status,
            campaign_id: self.base.key.campaign,
            entity_id: self.base.key.entity,
            player_id: self.base.key.player,
            model: self.model.clone(),
            narrative: narrative.to_owned(),
            tool_calls: self.tool_calls.clone(),
            mechanics: self.mechanics.clone(),
            parse_error: self.parse_error.clone(),
            prompt: (!self.caller.is_player()).then(|| self.prompt_view()),
            usage: self.usage,
            timings_ms: Timings {
                total: millis(total),
                llm: millis(self.in_model),
                server: millis(total.saturating_sub(self.in_model)),
            },
            created_at: self.created_at,
        };
        let body = serde_json::to_string(&view).map_err(Error::internal)?;
        let lore = self.base.segments.iter().flat_map(|s| s.lore.iter()).chain(&self.text.lore);
        let cut = self.base.segments.iter().map(|s| (s.section.name(), s.cut.as_str()));
        let trace = Trace {
            player_id: self.base.key.player,
            action: &self.job.action,
            turn_text: &self.text.text,
            lore: lore.take(200).collect(),
            cut: cut.chain([(Section::Turn.name(), self.text.cut.as_str())]).filter(|(_, c)| !c.is_empty()).collect(),
            llm_calls: &self.llm_calls,
            revert_conflicts: None,
        };
        #[derive(serde::Serialize)]
        struct Record<'a> {
            view: &'a RawValue,
            /// Where the view, being a player's, has none.
            #[serde(skip_serializing_if = "Option::is_none")]
            prompt: Option<PromptView>,
            trace: &'a Trace<'a>,
        }
        let raw = serde_json::from_str::<&RawValue>(&body).map_err(Error::internal)?;
        let prompt = self.caller.is_player().then(|| self.prompt_view());
        let record = serde_json::to_string(&Record { view: raw, prompt, trace: &trace });
        Ok((body.clone().into_bytes(), record.map_err(Error::internal)?))
    }

    fn prompt_view(&self) -> PromptView {
        let mut sections: Vec<SectionView> = self
            .base
            .segments
            .iter()
            .map(|s| SectionView { name: s.section.name(), tokens: s.tokens, hash: s.hash.clone() })
            .collect();
        sections.push(SectionView {
            name: Section::History.name(),
            tokens: self.transcript.tokens,
            hash: self.transcript.hash.clone(),
        });
        sections.push(SectionView {
            name: Section::Turn.name(),
            tokens: self.text.tokens,
            hash: self.text.hash.clone(),
        });
        PromptView {
            cache: if self.hit { "hit" } else { "miss" },
            base_hash: self.base.hash.as_ref().to_owned(),
            base_tokens: self.base.tokens,
            sections,
        }
    }
}

/// Milliseconds with three decimals.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// What the model said and what came of it, for the next call.
pub(super) fn answer_calls(more: &mut Vec<Message>, completion: Completion, done: &[ToolCall], mode: ReplyMode) {
    let outcome = |call: &ToolCall| -> Value {
        match (&call.result, &call.error) {
            (Some(result), _) => result.clone(),
            (None, error) => json!({ "error": error }),
        }
    };
    match mode {
        ReplyMode::Native => {
            more.push(Message::assistant(completion.text, completion.tool_calls));
            more.extend(done.iter().map(|call| Message::tool_result(call.id.clone(), outcome(call).to_string())));
        }
        ReplyMode::Xml => {
            let results: Vec<_> =
                done.iter().map(|c| json!({ "tool_name": c.name, "status": c.status, "result": outcome(c) })).collect();
            let mut text = String::new();
            crate::prompt::fence::put(&mut text, "tool_results", &[], &Value::Array(results).to_string());
            more.push(Message::assistant(completion.text, Vec::new()));
            more.push(Message::text(Role::User, text));
        }
    }
}
