//! The turn of an NPC or owner: it answers a player.
//!
//! `open` begins it with a cached or a new prompt, `turn` is its work, and `seen` shows it to clients and in its record.

mod open;
mod seen;
mod turn;

use super::{
    cx::Cx,
    frame,
    job::{Job, OnBusy},
    place::Permit,
    running::{Asker, Spot},
    store::Place,
    view::TurnView,
};
use crate::{
    prompt::{
        key::PromptKey,
        names::{PromptNames, PromptRequest},
    },
    state::Ai,
};
use base::error::Result;
use edge::{caller::Caller, http::Written};
use open::Opener;

/// Runs a turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &Ai, caller: &Caller, job: &Job, asker: &Asker) -> Result<Written<TurnView>> {
    let cx = Cx::new(app, caller, asker).await?;
    let prompt = prompt_request(&cx, job);
    let at = |key: PromptKey| Spot { tenant: caller.tenant_id(), entity: key.entity, player: key.player };
    let permit = match job.on_busy {
        OnBusy::Reject => Permit::unless_busy(&cx, job.kind.into(), prompt.known().map(at), job.key.is_some())?,
        OnBusy::Queue => {
            let key = prompt.key(&app.prompts, &app.pool, caller).await?;
            Permit::in_line(&cx, job.kind.into(), at(key)).await?
        }
    };
    frame::run(&cx, permit, &Opener { cx: &cx, job, prompt }).await
}

/// Runs a turn that does not wait here: one that has waited under its id, or a failed one that its key starts again.
///
/// # Errors
/// The errors of [`run`].
pub async fn react(app: &Ai, caller: &Caller, job: &Job, asker: &Asker, place: Place) -> Result<Written<TurnView>> {
    let cx = Cx::new(app, caller, asker).await?;
    let prompt = prompt_request(&cx, job);
    frame::run(&cx, Permit::at_once(&cx, job.kind.into(), place), &Opener { cx: &cx, job, prompt }).await
}

fn prompt_request<'a>(cx: &'a Cx<'a>, job: &'a Job) -> PromptRequest<'a> {
    let Job { campaign, kind, entity, player, mode, .. } = job;
    let names = PromptNames { campaign, kind: *kind, entity, player };
    PromptRequest::new(&cx.app.prompts, cx.caller, names, *mode, &cx.models)
}
