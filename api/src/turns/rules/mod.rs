//! The rules turn: a model says which check a player's action needs, the rules decide it.
//!
//! The model sees names, not numbers, has to call one of the tools in [`offer`] and calls it once. What it calls is a tool like any
//! other: typed arguments, validated, executed as the player. No call, or one that nobody can make sense of, is no check.

mod context;
pub mod http;
mod offer;

use entity::character;
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::Row;
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    CallError, CallStatus, LlmCall, Mechanics, OnFailure, Status, Timings, ToolCall, Trace, TurnView, ask,
    live::Item,
    runner::{answer_calls, millis},
    start::Asker,
    store::{self, Ended, Failure, NewTurn, Opened},
};
use crate::{
    app::App,
    auth::Caller,
    characters, clock,
    error::{Code, Error, Result},
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id, col},
    },
    llm::{ChatRequest, Endpoint, Message, ReplyMode, Role, ToolChoice, Usage, reply},
    messages::service::Reader,
    ops::metrics,
    tenancy::{Origin, TenantTx},
    tools::{self, ActorKind, ToolCx},
};

const NO_CHECK: &str = "mark_no_check";
/// How often the model is asked: once more if its arguments were wrong.
const STEPS_MAX: usize = 2;

/// An action to be decided.
pub struct RulesJob {
    pub campaign: String,
    pub player: String,
    pub action: String,
    pub mode: ReplyMode,
    pub dice: Option<Vec<u32>>,
    pub preview: bool,
    pub key: Option<IdempotencyKey>,
}

/// Runs a rules turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `invalid_dice`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &App, caller: &Caller, job: &RulesJob, asker: &Asker) -> Result<Reply> {
    let endpoint = app.llm.endpoint(&caller.tenant, &app.secrets)?;
    match attempt(app, caller, job, &endpoint, asker).await {
        // Perhaps what stands in the way is a turn whose server is gone.
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if store::sweep(&app.pool).await? == 0 {
                return Err(e);
            }
            attempt(app, caller, job, &endpoint, asker).await
        }
        result => result,
    }
}

async fn attempt(app: &App, caller: &Caller, job: &RulesJob, endpoint: &Endpoint, asker: &Asker) -> Result<Reply> {
    let (started, created_at, id) = (Instant::now(), clock::now(), Uuid::now_v7());
    let tx = TenantTx::write_lazily(&app.pool, &caller.actor().in_turn(id, Origin::Turn)).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(&job.campaign)).await?;
    let player = characters::service::player_id(&tx, campaign, &job.player).await?;
    caller.may_act_as(player)?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    let actor = character::Entity::find()
        .filter(col("tenant_id").eq(tx.tenant()))
        .filter(col("id").eq(player))
        .one(&tx)
        .await?
        .ok_or_else(|| Error::not_found("character"))?;
    let present = context::present(&tx, campaign, &actor).await?;
    let mut turn = RulesTurn {
        app,
        caller,
        job,
        endpoint,
        asker,
        id,
        campaign,
        player,
        text: context::situation(&actor, &present, &job.action),
        started,
        created_at,
        model: endpoint.model.clone(),
        usage: Usage::default(),
        llm_calls: Vec::new(),
        tool_calls: Vec::new(),
        parse_error: None,
    };
    match store::open(&tx, &turn.row()).await? {
        Opened::Replay(reply) => return Ok(reply),
        Opened::Runs(id) => turn.id = id,
        Opened::Moved => return Err(Error::new(Code::TurnInProgress, "The player is already acting.")),
    }
    tx.commit().await?;
    let _entered = app.running.enter(turn.id, asker);
    let done = match turn.decide().await {
        Ok(decided) => turn.finish(&decided).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(reply) => Ok(reply),
        Err(error) => turn.give_up(error).await,
    }
}

/// What the rules said.
struct Decided {
    tool: &'static str,
    arguments: Value,
    raw: String,
    parsed: Value,
}

/// What a client is told.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Resolution {
    /// The outcome: check, components, dice, success, damage, what changed.
    #[schema(value_type = Object)]
    pub parsed: Value,
    /// The same in seven lines, for a narrator.
    pub raw: String,
    /// The tool the model chose.
    pub tool: &'static str,
    /// The arguments it chose.
    #[schema(value_type = Object)]
    pub arguments: Value,
    pub usage: Usage,
    pub turn_id: Uuid,
}

struct RulesTurn<'a> {
    app: &'a App,
    caller: &'a Caller,
    job: &'a RulesJob,
    endpoint: &'a Endpoint,
    asker: &'a Asker,
    id: Uuid,
    campaign: Uuid,
    player: Uuid,
    text: String,
    started: Instant,
    created_at: OffsetDateTime,
    model: String,
    usage: Usage,
    llm_calls: Vec<LlmCall>,
    tool_calls: Vec<ToolCall>,
    parse_error: Option<String>,
}

impl RulesTurn<'_> {
    fn row(&self) -> NewTurn<'_> {
        NewTurn {
            id: self.id,
            campaign: self.campaign,
            kind: "rules",
            entity: self.player,
            player: Some(self.player),
            action: &self.job.action,
            mode: self.job.mode,
            on_failure: OnFailure::Revert,
            key_id: self.caller.author(),
            instance: self.app.running.instance,
            key: self.job.key.as_ref(),
            talk_version: 0,
        }
    }

    /// Asks the model which check it is, and decides it.
    async fn decide(&mut self) -> Result<Decided> {
        let messages = [
            Message::text(Role::System, context::instructions(self.job.mode)),
            Message::text(Role::User, self.text.clone()),
        ];
        let native = self.job.mode == ReplyMode::Native;
        let tools = if native { offer::definitions() } else { None };
        let mut more = Vec::new();
        for _ in 0..STEPS_MAX {
            let request = ChatRequest {
                prefix: &messages,
                messages: &more,
                tools,
                tool_choice: native.then_some(ToolChoice::Required),
                ..ChatRequest::default()
            };
            let (mut completion, call) = ask::ask(self.app, self.endpoint, &request, &self.asker.cancel).await?;
            self.usage += completion.usage;
            self.model.clone_from(&completion.model);
            self.llm_calls.push(call);
            let mut parsed = reply::parse_native(&completion);
            if parsed.calls.is_empty() {
                // Some endpoints do not force a call although they are asked to.
                parsed = reply::parse_text(&completion.text);
            }
            self.parse_error = parsed.parse_error;
            let Some(proposed) = parsed.calls.into_iter().find(|c| offer::offers(&c.name)) else { break };
            let id = proposed.id.unwrap_or_else(|| "call_1".to_owned());
            let (arguments, error) = match proposed.arguments.map(offer::proposed) {
                Ok(arguments) => match self.resolve(&id, &proposed.name, arguments.clone()).await {
                    Err(error) if error.code == Code::ValidationFailed => (arguments, error),
                    result => return result,
                },
                Err(why) => {
                    (Value::Null, Error::invalid("", "invalid_json", format!("The arguments are not JSON: {why}")))
                }
            };
            completion.tool_calls.retain(|call| call.id == id);
            let refused = self.refused(id, proposed.name, arguments, &error);
            answer_calls(&mut more, completion, &[refused], self.job.mode);
        }
        let reason = "Nothing here needs a check.";
        self.resolve("call_1", NO_CHECK, json!({ "reason": reason })).await
    }

    /// Runs the tool the model chose, as the player, in one transaction.
    async fn resolve(&mut self, id: &str, name: &str, arguments: Value) -> Result<Decided> {
        let tool = tools::find(name).ok_or_else(|| Error::internal("a tool of the rules is missing"))?;
        let actor = self.caller.actor().in_turn(self.id, Origin::Turn);
        let decides = !name.starts_with("mark_");
        self.tell(|| Item::call(id, tool.name, &arguments));
        let mut attempts_left = 3;
        let mut result = loop {
            let (pool, instance) = (&self.app.pool, self.app.running.instance);
            let tx = TenantTx::hold_turn(pool, &actor, self.id, instance).await?;
            let cx = ToolCx {
                tx: &tx,
                campaign: self.campaign,
                kind: ActorKind::Character,
                entity: self.player,
                player: None,
                session: None,
                reader: Reader::GM,
                turn: Some(self.id),
                key: None,
                dice: self.job.dice.as_deref().filter(|_| decides),
                heard: None,
                hand: None,
                preview: self.job.preview,
                apply: false,
                rows_max: self.caller.tenant.limits.rows_per_kind,
            };
            match tool.run(&cx, arguments.clone()).await {
                Ok(result) => {
                    tx.commit().await?;
                    break result;
                }
                Err(error) if error.is_transient() && attempts_left > 1 => attempts_left -= 1,
                Err(error) => return Err(error),
            }
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: tool.name.to_owned(),
            arguments: arguments.clone(),
            status: CallStatus::Succeeded,
            result: Some(result.clone()),
            error: None,
        };
        self.tell(|| Item::result(&call));
        self.tool_calls.push(call);
        metrics::TOOL_CALLS.with_label_values(&[tool.name, "succeeded"]).inc();
        let raw = result.as_object_mut().and_then(|r| r.remove("raw"));
        let raw = raw.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        if let (false, Some(dice), Some(members)) = (decides, &self.job.dice, result.as_object_mut()) {
            members.insert("dice_unused".to_owned(), json!(dice));
        }
        Ok(Decided { tool: tool.name, arguments, raw, parsed: result })
    }

    /// Records a call that could not be executed.
    fn refused(&mut self, id: String, name: String, arguments: Value, error: &Error) -> ToolCall {
        metrics::TOOL_CALLS.with_label_values(&[tools::find(&name).map_or("unknown", |t| t.name), "failed"]).inc();
        let error = CallError { code: error.code.as_str().to_owned(), message: told(error) };
        self.parse_error = Some(error.message.clone());
        let call = ToolCall { id, name, arguments, status: CallStatus::Failed, result: None, error: Some(error) };
        self.tell(|| Item::result(&call));
        self.tool_calls.push(call.clone());
        call
    }

    async fn finish(&self, decided: &Decided) -> Result<Reply> {
        let resolution = Resolution {
            parsed: decided.parsed.clone(),
            raw: decided.raw.clone(),
            tool: decided.tool,
            arguments: decided.arguments.clone(),
            usage: self.usage,
            turn_id: self.id,
        };
        let reply = Reply::ok(&resolution)?;
        let ended = Ended {
            status: Status::Succeeded,
            record: self.record(Status::Succeeded, &decided.raw)?,
            model: &self.model,
            usage: &self.usage,
            cost_micros: self.cost_micros(),
            body: &reply.body,
        };
        let actor = self.caller.actor().in_turn(self.id, Origin::Turn);
        if let Some(live) = &self.asker.live {
            live.say(&decided.raw);
            store::save_told(&self.app.pool, &actor, self.id, live).await;
        }
        store::finish(&self.app.pool, &actor, &self.row(), &ended, None).await?;
        metrics::TURNS.with_label_values(&["rules", Status::Succeeded.as_str()]).inc();
        metrics::TURN_SECONDS.with_label_values(&["rules"]).observe(self.started.elapsed().as_secs_f64());
        tracing::info!(request_id = %self.caller.request, turn_id = %self.id, kind = "rules", tool = decided.tool, "turn ended");
        Ok(reply)
    }

    async fn give_up(&self, error: Error) -> Result<Reply> {
        if let Some(live) = &self.asker.live {
            store::save_told(&self.app.pool, &self.caller.actor(), self.id, live).await;
        }
        let asked = store::cancel_requested(&self.app.pool, self.caller.tenant_id(), self.id);
        let cancelled =
            self.asker.cancel.is_cancelled() || (error.code == Code::Conflict && asked.await.unwrap_or(false));
        let (status, code, message) = if cancelled {
            (Status::Cancelled, "cancelled", "The turn was cancelled.")
        } else {
            (Status::Failed, error.code.as_str(), error.detail.as_str())
        };
        let failure = Failure {
            status,
            code,
            message,
            record: Some(self.record(status, "")?),
            model: &self.model,
            usage: &self.usage,
            cost_micros: self.cost_micros(),
        };
        let closed =
            store::fail(&self.app.pool, &self.caller.actor(), self.id, self.app.running.instance, &failure).await;
        if let Err(e) = closed {
            tracing::error!(turn_id = %self.id, error = %e, "a failed turn could not be closed; the sweeper will");
        }
        metrics::TURNS.with_label_values(&["rules", status.as_str()]).inc();
        let error = if cancelled { Error::new(Code::Conflict, "The turn was cancelled.") } else { error };
        Err(error.for_turn(self.id))
    }

    /// Tells those who listen.
    fn tell(&self, item: impl FnOnce() -> Item) {
        if let Some(live) = &self.asker.live {
            live.tell(item());
        }
    }

    fn cost_micros(&self) -> Option<u64> {
        self.caller.tenant.settings.llm.prices.map(|p| p.cost_micros(&self.usage))
    }

    /// The record, as `GET …/turns/{id}` shows it.
    fn record(&self, status: Status, raw: &str) -> Result<String> {
        let total = self.started.elapsed();
        let in_model: f64 = self.llm_calls.iter().map(|c| c.latency_ms).sum();
        let view = TurnView {
            id: self.id,
            kind: "rules",
            status,
            campaign_id: self.campaign,
            entity_id: self.player,
            player_id: Some(self.player),
            model: self.model.clone(),
            narrative: raw.to_owned(),
            tool_calls: self.tool_calls.clone(),
            mechanics: None,
            parse_error: self.parse_error.clone(),
            role: None,
            context: None,
            dice_unused: None,
            prompt: None,
            usage: self.usage,
            timings_ms: Timings { total: millis(total), llm: in_model, server: (millis(total) - in_model).max(0.0) },
            created_at: self.created_at,
        };
        let trace = Trace {
            player_id: Some(self.player),
            action: &self.job.action,
            turn_text: &self.text,
            lore: Vec::new(),
            cut: Vec::new(),
            llm_calls: &self.llm_calls,
            revert_conflicts: None,
        };
        serde_json::to_string(&json!({ "view": view, "trace": trace })).map_err(Error::internal)
    }
}

/// What an earlier rules turn decided; that of one player, if it is for one.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/mechanics_turn_id`.
pub async fn mechanics(
    app: &App,
    caller: &Caller,
    campaign: &str,
    player: Option<&str>,
    turn: Uuid,
) -> Result<Mechanics> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let player = match player {
        Some(player) => Some(characters::service::player_id(&tx, campaign, player).await?),
        None => None,
    };
    let row = sqlx::query(
        "SELECT record #> '{view,narrative}' AS raw, record #> '{view,tool_calls}' AS calls FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND campaign_id = $3 AND ($4::uuid IS NULL OR player_id = $4) AND kind = 'rules' AND status = 'succeeded' \
           AND undone_at IS NULL",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(campaign)
    .bind(player)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| {
        let message = "There is no rules turn here that decided something and stands.";
        Error::invalid("/mechanics_turn_id", "unknown_reference", message)
    })?;
    let raw: Value = row.get("raw");
    let calls: Value = row.get("calls");
    let mut parsed = calls.as_array().and_then(|c| c.last()).and_then(|c| c.get("result")).cloned().unwrap_or_default();
    if let Some(members) = parsed.as_object_mut() {
        members.remove("raw");
    }
    Ok(Mechanics { turn_id: turn, raw: raw.as_str().unwrap_or_default().to_owned(), parsed })
}

/// An error as the model is told it.
fn told(error: &Error) -> String {
    let fields: Vec<_> = error.errors.iter().map(|e| format!("{}: {}", e.pointer, e.message)).collect();
    format!("{} {}", error.detail, fields.join("; "))
}
