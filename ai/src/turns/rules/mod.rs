//! The rules turn: a model says which check a player's action needs, and the rules decide it.
//!
//! The model sees names, not numbers. It has to make one call of a tool in [`offer`]. The call runs like any other: with typed,
//! validated arguments, as the player. If there is no call, or none that can be parsed, there is no check.
//!
//! - [`job`] is a request and [`resolution`] its answer; `turn` opens the turn and does its work.
//! - [`ruling`] is the part that decides; planner turns use it too. If the character is in a fight, `fight` turns a proposal into a
//!   call for the encounter engine.
//! - [`told`] says the decision in words for the table, and [`narrate`] tells it, for the command `do`.
//! - [`mechanics()`] reads a decision for a later turn that tells it; [`settled`] stores decisions made without a model.

mod context;
pub(crate) mod fight;
pub mod http;
pub mod job;
mod mechanics;
pub mod narrate;
mod offer;
pub mod resolution;
pub mod ruling;
pub mod settled;
pub(crate) mod told;
mod turn;

pub use context::{Acting, acting};
pub use mechanics::mechanics;

use serde::Serialize;

use super::{cx::Cx, frame, kind::TurnKind, place::Permit, running::Asker, store::Place};
use crate::state::Ai;
use base::error::Result;
use edge::{caller::Caller, http::Written};
use job::RulesJob;
use turn::Opener;

/// Runs a rules turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `invalid_dice`, `validation_failed`, `not_found`, limits.
pub async fn run<V: Serialize>(app: &Ai, caller: &Caller, job: &RulesJob<V>, asker: &Asker) -> Result<Written<V>> {
    let cx = Cx::new(app, caller, asker).await?;
    frame::run(&cx, Permit::at_once(&cx, TurnKind::Rules, Place::Free), &Opener { cx: &cx, job }).await
}
