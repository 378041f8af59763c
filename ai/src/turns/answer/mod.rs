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
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::{
    auth::player,
    caller::Caller,
    http::{
        Written,
        resource::{Ref, campaign_id},
    },
};
use entity::{CampaignId, CharacterId, MessageId};
use open::Opener;
use world::messages::question;

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

/// The most characters of what a player does or says.
const ACTION_CHARS_MAX: usize = 4000;

/// Why nobody can answer these words; none if they fit.
#[must_use]
pub(super) fn unfit(text: &str) -> Option<&'static str> {
    match text.chars().count() {
        _ if text.trim().is_empty() => Some("must not be blank"),
        count if count > ACTION_CHARS_MAX => Some("must have at most 4000 characters"),
        _ => None,
    }
}

/// The words of a message that a player said and nobody has answered, for a game master.
///
/// # Errors
/// `forbidden`; `validation_failed` unless it is a message of this player that is short enough; `conflict` if it has been answered.
pub async fn words(app: &Ai, caller: &Caller, (campaign, player): (&str, &str), id: MessageId) -> Result<String> {
    caller.needs_game_master("Naming a message")?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let player = player::id(&tx, campaign, player).await?;
    let words = question::words(&tx, CampaignId(campaign), id, CharacterId(player)).await?;
    match unfit(&words) {
        None => Ok(words),
        Some(why) => {
            Err(Error::invalid("/message_id", "invalid_value", format!("has words that do not fit: they {why}")))
        }
    }
}
