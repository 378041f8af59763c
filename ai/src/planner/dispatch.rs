//! Carries out a plan that passed every gate: a command in the transaction that also ends the turn, or the work of a rules turn.

use super::{
    Reason,
    answer::{ActView, Outcome, PlanView},
    gates::FailedPredicate,
    memory::Scene,
    turn::PlanTurn,
};
use crate::{
    commands::{
        self, Command,
        service::{action_report, counted, report_after},
        spec::{CommandCx, CommandOutcome},
    },
    tools::{Rest, Work},
    turns::{
        rules::{self, job::Teller, narrate, resolution::Resolution, ruling::Ruling},
        view::Visibility,
    },
};
use base::error::{Code, Error, FieldError, Result};
use db::{
    retry::{PAID, Tries},
    tenancy::{Origin, TenantTx},
};
use edge::{http::Made, tenants::tasks::Task};
use world::significance::report::Source;

/// Whether the acting character was deleted during planning: it is not found, or rows that refer to it cannot be written.
fn is_gone(error: &Error) -> bool {
    let refers = |e: &FieldError| e.pointer == "/player_id" && e.code == "unknown_reference";
    error.code == Code::NotFound || error.errors.iter().any(refers)
}

impl PlanTurn<'_> {
    /// Carries out a command, and ends the turn with it.
    pub(super) async fn execute(
        &mut self,
        command: &'static Command,
        plan: PlanView,
        reason: Option<Reason>,
    ) -> Result<Made<ActView>> {
        let done = if command.is_turn() {
            self.by_turn(command, &plan, reason).await
        } else {
            self.at_once(command, &plan, reason).await
        };
        counted(command, "planner", done.is_ok());
        if let (Ok((_, Outcome::Executed)), Some(kind)) = (&done, self.scene.report_actions.of_command(command.name)) {
            let report = action_report(self.scene.player, kind, &plan.args, &self.request.text);
            let source = if command.is_turn() { Source::Deed } else { Source::Command };
            report_after(self.talk.app, self.talk.caller, self.scene.campaign, &report, source).await;
        }
        match done {
            // Errors that the player can correct by other words.
            Err(error) if FailedPredicate::of_fight(&error).is_some() => {
                let failed: Vec<_> = FailedPredicate::of_fight(&error).into_iter().collect();
                self.refuse(failed.into(), Some(command), None).await
            }
            Err(error) if is_gone(&error) => {
                self.refuse(vec![FailedPredicate::ACTOR].into(), Some(command), None).await
            }
            Err(error)
                if matches!(
                    error.code,
                    Code::ValidationFailed | Code::InvalidFormula | Code::PayloadTooLarge | Code::SlugTaken
                ) =>
            {
                self.refuse(Reason::ArgValidation.into(), Some(command), None).await
            }
            done => done.map(|(answer, _)| answer),
        }
    }

    /// Runs a command in the transaction that also ends the turn.
    async fn at_once(
        &mut self,
        command: &'static Command,
        plan: &PlanView,
        reason: Option<Reason>,
    ) -> Result<(Made<ActView>, Outcome)> {
        let (app, caller) = (self.talk.app, self.talk.caller);
        let actor = caller.actor().in_turn(self.talk.id, Origin::Turn);
        let mut tries = Tries::with(PAID);
        loop {
            // Whether the turn is still this server's is only checked when it ends.
            let (turn, &Scene { campaign, player, scene, .. }) = (self.talk.id, &*self.scene);
            let name = self.scene.player_name.as_str();
            let said = Some((turn, self.request.text.as_str()));
            let work = Work::new(&app.pool, &actor, campaign, None);
            let cx = CommandCx {
                work: &work,
                corpora: &app.prompts.corpora,
                caller,
                campaign,
                player,
                name,
                scene,
                turn: Some(turn),
                said,
            };
            let done = match command.run(&cx, plan.args.clone()).await {
                Ok(done) => self.end_with_outcome(done, plan, reason, work).await,
                Err(error) => Err(error),
            };
            match done {
                Err(error) if tries.wait_to_retry(&error).await => {}
                done => return done.map(|answer| (answer, Outcome::Executed)),
            }
        }
    }

    /// Ends the turn with the result of its command.
    async fn end_with_outcome(
        &mut self,
        done: CommandOutcome,
        plan: &PlanView,
        reason: Option<Reason>,
        work: Work<'_>,
    ) -> Result<Made<ActView>> {
        let CommandOutcome { visibility, result, message, messages, call } = done;
        let mut plan = plan.clone();
        // A difficulty that the command keeps to itself.
        if let (Some(call), Some(args)) = (&call, plan.args.as_object_mut())
            && call.arguments.get("dc").is_none()
        {
            args.remove("dc");
        }
        self.talk.tool_calls = call.into_iter().collect();
        let view = ActView {
            reason,
            plan: Some(plan),
            result: Some(result),
            visibility,
            ..ActView::quiet(self.talk.id, Outcome::Executed, message, self.cached)
        };
        let (rest, said) = work.into_rest();
        self.end_with(view, &[said, messages].concat(), rest).await
    }

    /// An action in the world. The rules decide it and a narrator describes it, all in this turn.
    async fn by_turn(
        &mut self,
        command: &'static Command,
        plan: &PlanView,
        reason: Option<Reason>,
    ) -> Result<(Made<ActView>, Outcome)> {
        let deed = commands::deed::deed(plan.args.clone())?;
        let (turn, &Scene { campaign, player, scene, .. }) = (self.talk.id, &*self.scene);
        let acting = {
            let tx = TenantTx::read(&self.talk.app.pool, self.talk.caller.tenant_id()).await?;
            rules::acting(&tx, campaign, player, &deed).await?
        };
        // The player's own words say who is meant, not the model's version of them.
        let action = &self.request.text;
        let (judge, narrator) = (self.choose(Task::Classify)?, self.choose(Task::Narrate));
        self.talk.mode = judge.mode;
        let mut ruling = Ruling {
            talk: &mut self.talk,
            judge,
            campaign,
            player,
            acting: &acting,
            action,
            is_command: true,
            dice: None,
            preview: false,
        };
        let decided = ruling.decide().await?;
        if let Some(why) = decided.unclear.clone() {
            let refused = vec![FailedPredicate::unclear(why)].into();
            return self.refuse(refused, Some(command), None).await.map(|answer| (answer, Outcome::Rejected));
        }
        let narration = match decided.is_a_tale() {
            true => narrate::narrate(&mut self.talk, &narrator, &acting.name, &deed, &decided.raw).await,
            false => None,
        };
        let resolution = Resolution::of(decided, narration, &self.talk);
        let teller = Teller { turn, player, name: &acting.name, scene, words: None };
        let (message, messages) = commands::deed::spoken(&resolution, &teller);
        let view = ActView {
            reason,
            plan: Some(plan.clone()),
            result: Some(serde_json::to_value(&resolution).map_err(Error::internal)?),
            visibility: Visibility::Public,
            ..ActView::quiet(turn, Outcome::Executed, message, self.cached)
        };
        tracing::debug!(turn_id = %turn, command = command.name, tool = resolution.tool, "the rules decided an action");
        self.end_with(view, &messages, Rest::default()).await.map(|answer| (answer, Outcome::Executed))
    }
}
