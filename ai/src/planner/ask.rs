//! How a text gets its plan: from the cache or from the model.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::{
    Missing,
    gates::Allowed,
    memory::{Key, Scene},
    plan::{self, Plan},
    prompt,
    turn::PlanTurn,
};
use crate::turns::{ask, talk::Talk, view::LlmCall};
use base::metrics;
use edge::tenants::tasks::Task;
use llm::{ChatRequest, Completion};

/// The most characters of a rationale in the log.
const RATIONALE_CHARS_MAX: usize = 120;

impl PlanTurn<'_> {
    /// The plan for the text, from the cache or from the model. If several ask for the same text at once, only one asks the model.
    pub(super) async fn plan(&mut self, allowed: Allowed) -> Result<Arc<Plan>, Missing> {
        let Scene { campaign, scene, player, .. } = *self.scene;
        let tenant = self.talk.caller.tenant_id();
        let key = Key { tenant, campaign, scene, player, text: self.request.text.clone() };
        let plans = &self.talk.app.planner.plans;
        let asked = Mutex::new(None);
        let plan = loop {
            if let Some(plan) = plans.get(&key).await {
                break Ok(plan);
            }
            match plans.try_get_with_by_ref(&key, self.ask(allowed, &asked)).await.map_err(|missing| *missing) {
                // The request that asked the model for this text was abandoned. Ask again for this one.
                Err(Missing::Abandoned) if !self.talk.asker.cancel.is_cancelled() => {}
                result => break result,
            }
        };
        let answered: Option<(Completion, LlmCall)> = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.cached = answered.is_none() && plan.is_ok();
        metrics::PLANNER_CACHE.with_label_values(&[if self.cached { "hit" } else { "miss" }]).inc();
        if let Some((completion, call)) = answered {
            // The record keeps the plan that was read from the reply, without its rationale.
            let text = plan.as_ref().map_or_else(
                |_| String::new(),
                |plan| json!({ "command": plan.command, "args": plan.args, "confidence": plan.confidence }).to_string(),
            );
            // Reasoning may quote the player, as the rationale does.
            self.talk.note(&completion, LlmCall { text, reasoning: String::new(), ..call });
        }
        plan
    }

    async fn ask(
        &self,
        allowed: Allowed,
        answered: &Mutex<Option<(Completion, LlmCall)>>,
    ) -> Result<Arc<Plan>, Missing> {
        let Talk { app, choice, asker, .. } = &self.talk;
        let messages = prompt::messages(allowed, &self.words.0);
        let request = ChatRequest { prefix: &messages, ..ChatRequest::default() };
        let answer =
            ask::ask_within(app, Task::Plan, choice, &request, &asker.cancel, self.talk.app.settings.planner.timeout)
                .await;
        if asker.cancel.is_cancelled() {
            return Err(Missing::Abandoned);
        }
        let (completion, call) = answer.map_err(|error| Missing::Model(error.code))?;
        let plan = plan::parse(&completion.text);
        *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some((completion, call));
        plan.map(Arc::new).map_err(|why| {
            metrics::PLANNER_PARSE_FAILED.inc();
            Missing::Unreadable(why)
        })
    }

    /// Logs why the model chose a command. Only at `debug`, because it may quote the player.
    pub(super) fn log_rationale(&self, plan: &Plan) {
        if let Some(rationale) = &plan.rationale {
            let rationale: String = rationale.chars().take(RATIONALE_CHARS_MAX).collect();
            tracing::debug!(turn_id = %self.talk.id, %rationale, "planner rationale");
        }
    }
}
