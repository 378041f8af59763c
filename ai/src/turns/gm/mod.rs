//! The turn of a session's AI: it runs the game, helps the game master, or plays a character.
//!
//! The turn first takes the session's place (`open`), and reads everything for its prompt after that, so that two turns of a session
//! never read the same cursor. The end of what it was told is stored with the turn, and counts as seen once the turn completes.
//! `turn` is its work, and [`preview`] shows its prompt without a turn.

pub mod http;
pub mod job;
mod lasting;
mod lore;
mod open;
pub mod preview;
mod prompt;
mod role;
pub mod session_prompts;
mod turn;

use uuid::Uuid;

use super::{
    cx::Cx,
    frame,
    job::OnBusy,
    kind::TurnKind,
    place::Permit,
    rules,
    running::{Asker, Spot},
    view::TurnView,
};
use crate::state::Ai;
use base::error::Result;
use edge::{caller::Caller, http::Written};
use job::GmJob;
use open::Opener;

/// Runs a session's turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &Ai, caller: &Caller, job: &GmJob, asker: &Asker) -> Result<Written<TurnView>> {
    let cx = Cx::new(app, caller, asker).await?;
    let mechanics = match job.mechanics {
        Some(turn) => Some(rules::mechanics(app, caller, &job.campaign, None, turn).await?),
        None => None,
    };
    let spot = Spot::of(caller.tenant_id(), &job.subject(Uuid::nil()));
    let permit = match job.on_busy {
        OnBusy::Reject => Permit::unless_busy(&cx, TurnKind::Gm, Some(spot), job.key.is_some())?,
        OnBusy::Queue => Permit::in_line(&cx, TurnKind::Gm, spot).await?,
    };
    frame::run(&cx, permit, &Opener { cx: &cx, job, mechanics }).await
}
