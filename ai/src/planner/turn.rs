//! The work of the turn: from the plan to the outcome.

use std::{ops::Range, sync::Arc};

use serde_json::{Value, json};

use super::{
    Missing, Reason, SURE,
    answer::{ActView, Outcome, PlanView, options, refusal},
    gates::{self, Allowed, Refused, Stage},
    is_refusal,
    memory::Scene,
    request::ActRequest,
};
use crate::{
    commands::Command,
    tools::Rest,
    turns::{
        frame::Turn,
        record::{Recorded, recorded},
        store::{Ended, NewTurn},
        talk::Talk,
        view::{Planned, Status, TurnView},
    },
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use edge::{
    http::Made,
    limits::Counted,
    models::{Choice, TenantModels},
    tenants::{
        Fallback,
        tasks::{Task, slug_in},
    },
};
use world::{
    messages::{prompt_text, service::NewMessage},
    paused,
};

/// A turn in progress. `ask` gets its plan, `dispatch` runs its command.
pub(super) struct PlanTurn<'a> {
    pub models: &'a TenantModels,
    pub talk: Talk<'a>,
    pub request: &'a ActRequest,
    pub scene: Arc<Scene>,
    /// The player's words as the model reads them, and where they stand in that.
    pub words: (String, Range<usize>),
    /// The plan's entry in the player's rate limit.
    pub counted: &'a Counted,
    pub confidence: Option<f64>,
    pub cached: bool,
}

impl Turn for PlanTurn<'_> {
    type Answer = ActView;

    /// Several texts of one player may be planned at the same time.
    const HAS_PLACE: bool = false;

    fn talk(&self) -> &Talk<'_> {
        &self.talk
    }

    async fn work(&mut self) -> Result<Made<ActView>> {
        self.counted.keep();
        metrics::PLANNER_REQUESTS.inc();
        if self.scene.is_paused && paused::holds_for(self.talk.caller) {
            return Err(paused::refusal("The game"));
        }
        self.plan_and_do().await
    }

    fn failed(&self, status: Status, why: &Error) -> Result<Recorded> {
        self.recorded(status, self.without_plan(why.code).as_ref())
    }

    /// If the model timed out or cannot be reached, that is an outcome, and the idempotency key may be used again.
    fn told(&self, ended: Result<Made<TurnView>>) -> Result<Made<ActView>> {
        let error = match ended {
            Ok(_) => return Err(cancelled().for_turn(self.talk.id)),
            Err(error) => error,
        };
        if let Some(view) = self.without_plan(error.code) {
            self.count_outcome(&view);
            return Made::ok(view);
        }
        metrics::PLANNER_DECISIONS.with_label_values(&["failed"]).inc();
        Err(error)
    }

    fn is_hit(&self) -> bool {
        self.cached
    }
}

impl PlanTurn<'_> {
    /// The model for a task, by the campaign's choice.
    ///
    /// # Errors
    /// `llm_unavailable`.
    pub fn choose(&self, task: Task) -> Result<Arc<Choice>> {
        self.models.choose(task, &[slug_in(self.scene.models.as_ref(), task)])
    }

    /// The outcome if the model timed out, is paused, cannot be reached or cannot read so much.
    fn without_plan(&self, code: Code) -> Option<ActView> {
        let (outcome, message) = match code {
            Code::LlmTimeout => (Outcome::Timeout, "That took too long, and nothing was done. Try again."),
            Code::LlmUnavailable => {
                (Outcome::Unavailable, "The planner cannot be reached, and nothing was done. Try again soon.")
            }
            Code::Paused => {
                let message = "Nothing was done, because a game master has paused the AI. Try again when it goes on.";
                (Outcome::Unavailable, message)
            }
            Code::PromptTooLarge => {
                let message = "Nothing was done, because the words and the rules do not fit into the model's context. Say it in fewer words.";
                (Outcome::Unavailable, message)
            }
            _ => return None,
        };
        Some(ActView::quiet(self.talk.id, outcome, message, false))
    }

    async fn plan_and_do(&mut self) -> Result<Made<ActView>> {
        let choice = self.choose(Task::Plan)?;
        self.talk.take(choice);
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
    async fn passed(&mut self, allowed: Allowed, command: &'static Command, args: Value) -> Result<Made<ActView>> {
        let plan = PlanView { command: command.name, args, confidence: self.confidence };
        let (turn, cached) = (self.talk.id, self.cached);
        if self.request.dry_run {
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
            let options = options(allowed, &plan, &self.request.text);
            return self.settle(ActView { plan: Some(plan), options, ..quiet }).await;
        }
        self.execute(command, plan, None).await
    }

    /// The model timed out or cannot be reached.
    async fn without_model(&mut self, allowed: Allowed, code: Code) -> Result<Made<ActView>> {
        let features = &self.talk.caller.tenant.settings.features;
        let falls_back = code == Code::LlmTimeout
            && features.planner_fallback == Fallback::Roll
            && features.llm_visible
            && !self.request.dry_run;
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
    ) -> Result<Made<ActView>> {
        self.settle(ActView::rejected(self.talk.id, refused, command, said, self.cached)).await
    }

    /// Ends the turn with an outcome that changed nothing.
    async fn settle(&self, view: ActView) -> Result<Made<ActView>> {
        self.end_with(view, &[], Rest::default()).await
    }

    /// Ends the turn with its outcome, the messages for the table, and the rest of the work to commit.
    pub(super) async fn end_with(&self, view: ActView, messages: &[NewMessage], rest: Rest) -> Result<Made<ActView>> {
        let Recorded { record, .. } = self.recorded(Status::Succeeded, Some(&view))?;
        let answer = Made::ok(view)?;
        let calls = &self.talk.llm_calls;
        let ended =
            Ended { status: Status::Succeeded, record, calls, answer: answer.stored(), reply: None, question: None };
        self.talk.end(&self.row(), ended, messages, rest).await?;
        self.count_outcome(answer.value());
        Ok(answer)
    }

    pub(super) fn row(&self) -> NewTurn<'_> {
        self.talk.row(&self.request.text, self.request.key.as_ref())
    }

    /// The turn as `GET …/turns/{id}` shows it, and its record. A client that did not wait for the answer finds everything there.
    fn recorded(&self, status: Status, view: Option<&ActView>) -> Result<Recorded> {
        let planned = view.map(|view| Planned::of(view, view.visibility)).transpose()?;
        let turn = TurnView {
            narrative: view.map(|view| view.message.clone()).unwrap_or_default(),
            planned,
            ..self.talk.view(status)
        };
        let words = prompt_text::without_words(&self.words.0, self.words.1.clone());
        recorded(turn, None, &self.talk.trace(words))
    }

    /// Logs and counts the outcome, without quoting the player or the model.
    fn count_outcome(&self, view: &ActView) {
        let (decision, took) = (view.decision(), self.talk.started.elapsed());
        metrics::PLANNER_DECISIONS.with_label_values(&[decision]).inc();
        metrics::PLANNER_SECONDS.with_label_values(&[decision]).observe(took.as_secs_f64());
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
