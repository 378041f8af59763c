//! Handles one text of a player, from the words to the outcome.

use tokio::time::Instant;

use super::{
    answer::ActView,
    memory::Scene,
    open::Opener,
    request::{ActRequest, may},
};
use crate::{
    state::Ai,
    turns::{cx::Cx, frame, kind::TurnKind, place::Permit, running::Asker, store::Place},
};
use base::error::Result;
use edge::{
    caller::Caller,
    http::{Written, answered},
};

/// Plans a text and gives the resulting command.
///
/// # Errors
/// The errors of [`may`]; `rate_limited`; `not_found`, `forbidden`, `validation_failed` for the request's references;
/// `idempotency_in_flight`, `idempotency_key_reused`; `conflict` if the turn was cancelled.
pub async fn act(app: &Ai, caller: &Caller, request: &ActRequest, asker: &Asker) -> Result<Written<ActView>> {
    let began = Instant::now();
    may(app, caller, &request.text)?;
    let cx = Cx::new(app, caller, asker).await?;
    let scene = Scene::of(app, caller, request).await?;
    let counted = match app.limits.take_plan(&caller.tenant, scene.player) {
        Ok(counted) => counted,
        Err(refused) => return answered(app, caller, request.key.as_ref()).await?.map(Written::Before).ok_or(refused),
    };
    let opener = Opener { cx: &cx, request, scene, counted: &counted, began };
    frame::run(&cx, Permit::at_once(&cx, TurnKind::Planner, Place::Free), &opener).await
}
