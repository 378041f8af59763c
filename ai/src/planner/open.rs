//! Begins a plan: writes the player's words into the history, stores that the turn runs, and claims its idempotency key.

use std::sync::Arc;

use uuid::Uuid;

use super::{memory::Scene, request::ActRequest};
use crate::{
    state::Ai,
    turns::{
        job::OnFailure,
        running::Asker,
        store::{self, NewTurn, Opened},
    },
};
use base::error::{Code, Error, Result};
use db::retry::{self, BRIEF};
use edge::{
    caller::Caller,
    http::{Reply, resource::Place},
    limits,
};
use entity::message::Author;
use world::{messages::service::NewMessage, scenes};

/// The most messages of a plan: the player's words, and those of the command.
const MESSAGES: u64 = 3;

/// The result of beginning a plan.
pub(super) enum Begun {
    /// The same request was answered before.
    Replay(Reply),
    /// The turn with this id runs.
    Runs(Uuid, Arc<Scene>),
}

/// Begins a plan. One round trip if what the server remembers of the scene is up to date.
///
/// # Errors
/// `not_found`, `forbidden`, `validation_failed` for the request's references; `idempotency_in_flight`, `quota_exceeded`.
pub(super) async fn open(
    app: &Ai,
    caller: &Caller,
    request: &ActRequest,
    asker: &Asker,
    scene: &Arc<Scene>,
) -> Result<Begun> {
    let attempt = async || retry::repeat(BRIEF, async || attempt(app, caller, request, asker, scene).await).await;
    match attempt().await {
        // The server of the first request may be gone.
        Err(e) if e.code == Code::IdempotencyInFlight => {
            if !store::freed(&app.pool, &app.running, caller.tenant_id(), &e).await {
                return Err(e);
            }
            attempt().await
        }
        result => result,
    }
}

async fn attempt(app: &Ai, caller: &Caller, request: &ActRequest, asker: &Asker, scene: &Arc<Scene>) -> Result<Begun> {
    let id = Uuid::now_v7();
    let actor = caller.actor();
    let limits = &caller.tenant.limits;
    let has_quota = limits.tokens_per_day > 0 || limits.rows_per_kind > 0;
    if !has_quota && !scene.is_new_channel {
        let said = words(id, scene, request);
        let new = NewTurn { live: asker.live.as_deref(), said: said.as_ref(), ..row(id, scene, app, caller, request) };
        if store::open_cached(&app.pool, &actor, &new, scene.stamps()).await? {
            return Ok(Begun::Runs(id, scene.clone()));
        }
    }
    // Otherwise one statement for each step.
    let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), store::Place::Free).await?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    limits::check_rows_more(&tx, limits.rows_per_kind, "message", MESSAGES).await?;
    let mut scene = Scene::read(app, &tx, caller, request).await?;
    // A dry run creates no scene.
    if let (true, false, Some(channel)) = (scene.is_new_channel, request.dry_run, &request.channel) {
        let place = Place { tx: &tx, campaign: scene.campaign, caller };
        Arc::make_mut(&mut scene).scene = Some(scenes::service::of_channel(&place, channel).await?);
    }
    let said = words(id, &scene, request);
    let new = NewTurn { live: asker.live.as_deref(), said: said.as_ref(), ..row(id, &scene, app, caller, request) };
    let begun = match store::open(&tx, &new).await? {
        Opened::Replay(reply) => Begun::Replay(reply),
        Opened::Runs(id) => Begun::Runs(id, scene),
        Opened::Moved => return Err(Error::new(Code::TurnInProgress, "The player is already acting.")),
    };
    tx.commit().await?;
    Ok(begun)
}

/// The player's words as a message, which has the turn's id. A dry run says nothing.
fn words(turn: Uuid, scene: &Scene, request: &ActRequest) -> Option<NewMessage> {
    (!request.dry_run).then(|| NewMessage {
        id: turn,
        scene_id: scene.scene,
        player_id: Some(scene.player),
        turn_id: Some(turn),
        ..NewMessage::chat(Author::Player, &scene.player_name, request.text.clone())
    })
}

/// The turn's row.
pub(super) fn row<'a>(id: Uuid, scene: &Scene, app: &Ai, caller: &Caller, request: &'a ActRequest) -> NewTurn<'a> {
    NewTurn {
        id,
        campaign: scene.campaign,
        kind: "planner",
        entity: scene.player,
        player: Some(scene.player),
        action: &request.text,
        mode: app.llm.reply_mode(&caller.tenant),
        on_failure: OnFailure::Revert,
        key_id: caller.author(),
        instance: app.running.instance,
        key: request.key.as_ref(),
        live: None,
        talk_version: None,
        parent: None,
        place: store::Place::Free,
        said: None,
    }
}
