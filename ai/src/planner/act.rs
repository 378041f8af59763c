//! Handles one text of a player, from the words to the outcome.

use std::{ops::Range, sync::Arc};

use serde_json::{Value, json, value::to_raw_value};
use tokio::time::Instant;

use super::{
    Missing, Reason, SURE,
    answer::{ActView, Outcome, PlanView, options, refusal},
    gates::{self, Allowed, Refused, Stage},
    is_refusal,
    memory::Scene,
    open::{self, Begun},
    prompt,
    request::{ActRequest, may},
};
use crate::{
    commands::Command,
    state::Ai,
    tools::Rest,
    turns::{
        running::Asker,
        store::{self, Ended, NewTurn},
        talk::{Talk, body_and_record},
        view::{Status, Trace, TurnView},
    },
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::Origin;
use edge::{
    caller::Caller,
    http::{Reply, answered},
    models::{Choice, TenantModels},
    tenants::{
        Fallback,
        tasks::{Task, slug_in},
    },
};
use world::messages::{prompt_text, service::NewMessage};

/// Plans a text and gives the resulting command.
///
/// # Errors
/// The errors of [`may`]; `rate_limited`; `not_found`, `forbidden`, `validation_failed` for the request's references;
/// `idempotency_in_flight`, `idempotency_key_reused`; `conflict` if the turn was cancelled.
pub async fn act(app: &Ai, caller: &Caller, wanted: &ActRequest, asker: &Asker) -> Result<Reply> {
    let started = Instant::now();
    may(app, caller, &wanted.text)?;
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    let provisional = models.provisional(Task::Plan, &[]);
    let scene = Scene::of(app, caller, wanted).await?;
    let counted = match app.limits.take_plan(&caller.tenant, scene.player) {
        Ok(counted) => counted,
        Err(refused) => return answered(app, caller, wanted.key.as_ref()).await?.ok_or(refused),
    };
    let (turn, scene) = match open::open(app, caller, wanted, asker, &scene).await? {
        Begun::Replay(reply) => return Ok(reply),
        Begun::Runs(turn, scene) => (turn, scene),
    };
    counted.keep();
    metrics::PLANNER_REQUESTS.inc();
    // Several texts of one player may be planned at the same time.
    let _entered = app.running.enter(turn, asker, caller.tenant_id(), None);
    let mode = provisional.mode;
    let talk = Talk::new(app, caller, (Task::Plan, provisional), mode, asker, (turn, started));
    let words = prompt::words(&scene.player_slug, &scene.player_name, &wanted.text);
    let mut acting = Acting { app, models: &models, talk, wanted, scene, words, confidence: None, cached: false };
    let chosen = acting.choose(Task::Plan).map(|choice| acting.talk.take(choice));
    let done = match chosen {
        Ok(()) => acting.run().await,
        Err(error) => Err(error),
    };
    let result = match done {
        Ok(reply) => Ok(reply),
        Err(error) => acting.give_up(error).await,
    };
    acting.talk.ended("planner", &result, acting.cached);
    result
}

/// A text in progress. `ask` gets its plan, `dispatch` runs its command.
pub(super) struct Acting<'a> {
    pub(super) app: &'a Ai,
    models: &'a TenantModels,
    pub(super) talk: Talk<'a>,
    pub(super) wanted: &'a ActRequest,
    pub(super) scene: Arc<Scene>,
    /// The player's words as the model reads them, and where they stand in that.
    pub(super) words: (String, Range<usize>),
    confidence: Option<f64>,
    pub(super) cached: bool,
}

impl<'a> Acting<'a> {
    /// The model for a task, by the campaign's choice.
    ///
    /// # Errors
    /// `llm_unavailable`.
    pub(super) fn choose(&self, task: Task) -> Result<Arc<Choice>> {
        self.models.choose(task, &[slug_in(self.scene.models.as_ref(), task)])
    }

    async fn run(&mut self) -> Result<Reply> {
        let allowed = Allowed::of(self.talk.caller, self.scene.allowed.as_ref());
        if allowed.is_empty() {
            return self.refuse(Reason::Allowlist.into(), None, None).await;
        }
        let plan = match self.plan(allowed).await {
            Ok(plan) => plan,
            Err(Missing::Unreadable(why)) => {
                tracing::debug!(turn_id = %self.talk.id, why = why.as_str(), "the model's reply has no valid plan");
                return self.refuse(Reason::Parse.into(), None, None).await;
            }
            Err(Missing::Model(code)) => return self.without_model(allowed, code).await,
            Err(Missing::Abandoned) => return Err(cancelled()),
        };
        self.confidence = plan.confidence;
        self.log_rationale(&plan);
        if is_refusal(&plan.command) {
            return self.refuse(Reason::Unsupported.into(), None, refusal(&plan.args)).await;
        }
        let Some(command) = allowed.command(&plan.command) else {
            return self.refuse(Reason::Allowlist.into(), None, None).await;
        };
        let Scene { campaign, player, .. } = *self.scene;
        let stage = Stage { app: self.talk.app, tenant: self.talk.caller.tenant_id(), campaign, player };
        match gates::pass(stage, command, plan.args.clone()).await? {
            Err(refused) => self.refuse(refused, Some(command), None).await,
            Ok(args) => self.passed(allowed, command, args).await,
        }
    }

    /// Handles a plan that passed every gate.
    async fn passed(&mut self, allowed: Allowed, command: &'static Command, args: Value) -> Result<Reply> {
        let plan = PlanView { command: command.name, args, confidence: self.confidence };
        let (turn, cached) = (self.talk.id, self.cached);
        if self.wanted.dry_run {
            let quiet = ActView::quiet(turn, Outcome::Planned, "This is what I would do.", cached);
            return self.settle(ActView { plan: Some(plan), ..quiet }).await;
        }
        if !self.talk.caller.tenant.settings.features.llm_visible {
            let quiet =
                ActView::quiet(turn, Outcome::Shadow, "Noted. The planner does not carry out commands yet.", cached);
            let shown = (!self.talk.caller.is_player()).then_some(plan);
            return self.settle(ActView { plan: shown, ..quiet }).await;
        }
        if plan.confidence.is_some_and(|confidence| confidence < SURE) {
            let quiet = ActView::quiet(turn, Outcome::NeedsClarification, "What did you mean?", cached);
            let options = options(allowed, &plan, &self.wanted.text);
            return self.settle(ActView { plan: Some(plan), options, ..quiet }).await;
        }
        self.execute(command, plan, None).await
    }

    /// The model timed out or cannot be reached.
    async fn without_model(&mut self, allowed: Allowed, code: Code) -> Result<Reply> {
        let features = &self.talk.caller.tenant.settings.features;
        let falls_back = code == Code::LlmTimeout
            && features.planner_fallback == Fallback::Roll
            && features.llm_visible
            && !self.wanted.dry_run;
        if let Some(roll) = allowed.command("roll").filter(|_| falls_back) {
            let plan = PlanView { command: roll.name, args: json!({ "expr": "1d20" }), confidence: None };
            return self.execute(roll, plan, Some(Reason::Timeout)).await;
        }
        Err(Error::new(code, "The model wrote no plan."))
    }

    pub(super) async fn refuse(
        &self,
        refused: Refused,
        command: Option<&Command>,
        said: Option<String>,
    ) -> Result<Reply> {
        self.settle(ActView::rejected(self.talk.id, refused, command, said, self.cached)).await
    }

    /// Ends the turn with an outcome that changed nothing.
    async fn settle(&self, view: ActView) -> Result<Reply> {
        self.end_with(view, &[], Rest::default()).await
    }

    /// Ends the turn with its outcome, the messages for the table, and the rest of the work to commit.
    pub(super) async fn end_with(&self, view: ActView, messages: &[NewMessage], rest: Rest) -> Result<Reply> {
        let reply = Reply::ok(&view)?;
        let record = self.record(&view)?;
        let actor = self.talk.caller.actor().in_turn(self.talk.id, Origin::Turn);
        let (pool, row, ended) = (&self.talk.app.pool, self.row(), self.ended(record, &reply));
        store::finish(pool, &actor, &row, &ended, messages, rest).await?;
        self.count_outcome(&view);
        Ok(reply)
    }

    /// Ends the turn without success. If the model timed out or cannot be reached, that is an outcome, and the idempotency key may
    /// be used again.
    async fn give_up(&self, error: Error) -> Result<Reply> {
        let (turn, code) = (self.talk.id, error.code);
        let (outcome, message) = match code {
            Code::LlmTimeout => (Outcome::Timeout, "That took too long, and nothing was done. Try again."),
            _ => (Outcome::Unavailable, "The planner cannot be reached, and nothing was done. Try again soon."),
        };
        let view = ActView::quiet(turn, outcome, message, false);
        let is_outcome = matches!(code, Code::LlmTimeout | Code::LlmUnavailable);
        let planned = |status| self.body_and_record(status, is_outcome.then_some(&view));
        match self.talk.give_up("planner", error, planned).await {
            Err(_) if is_outcome => {
                self.count_outcome(&view);
                Reply::ok(&view)
            }
            Err(error) => {
                metrics::PLANNER_DECISIONS.with_label_values(&["failed"]).inc();
                Err(error)
            }
            Ok(_) => Err(cancelled().for_turn(turn)),
        }
    }

    fn row(&self) -> NewTurn<'a> {
        open::row(self.talk.id, &self.scene, self.talk.app, self.talk.caller, self.wanted)
    }

    fn ended<'e>(&'e self, record: String, reply: &'e Reply) -> Ended<'e> {
        Ended { status: Status::Succeeded, record, calls: &self.talk.llm_calls, body: &reply.body, reply: None }
    }

    fn record(&self, view: &ActView) -> Result<String> {
        Ok(self.body_and_record(Status::Succeeded, Some(view))?.1)
    }

    /// The turn as `GET …/turns/{id}` shows it, and its record. A client that did not wait for the answer finds everything there.
    fn body_and_record(&self, status: Status, view: Option<&ActView>) -> Result<(Vec<u8>, String)> {
        let planned = view.map(to_raw_value).transpose().map_err(Error::internal)?;
        let turn = TurnView {
            narrative: view.map(|view| view.message.clone()).unwrap_or_default(),
            planned,
            ..self.talk.view("planner", status, self.scene.campaign, self.scene.player)
        };
        let trace = Trace {
            player_id: Some(self.scene.player),
            turn_text: prompt_text::without_words(&self.words.0, self.words.1.clone()),
            lore: Vec::new(),
            cut: Vec::new(),
            llm_calls: &self.talk.llm_calls,
            removed: &[],
            revert_conflicts: None,
        };
        body_and_record(&turn, None, &trace)
    }

    /// Logs and counts the outcome, without quoting the player or the model.
    fn count_outcome(&self, view: &ActView) {
        let (decision, took) = (view.decision(), self.talk.started.elapsed());
        metrics::PLANNER_DECISIONS.with_label_values(&[decision]).inc();
        metrics::PLANNER_SECONDS.with_label_values(&[decision]).observe(took.as_secs_f64());
        if !matches!(view.outcome, Outcome::Timeout | Outcome::Unavailable) {
            metrics::TURNS.with_label_values(&["planner", Status::Succeeded.as_str()]).inc();
        }
        let command = view.plan.as_ref().map(|plan| plan.command);
        tracing::info!(
            request_id = %self.talk.caller.request, turn_id = %self.talk.id, decision, command,
            confidence = self.confidence, cached = view.cached, "planner decision"
        );
    }
}

fn cancelled() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled.")
}
