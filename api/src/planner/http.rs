//! `POST …/act`.

use actix_web::{HttpRequest, HttpResponse, post, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    act::{Wanted, act, may},
    answer::ActView,
};
use crate::{
    app::App,
    auth::Caller,
    error::{Problem, Result},
    http::{Body, validate},
    turns::start::{Asker, TurnStarted, Wish, respond},
};

/// What a player writes.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ActInput {
    /// The player character who acts, by id or slug.
    player_id: String,
    #[schema(min_length = 1, max_length = 2000)]
    message: String,
    /// The scene it happens in, by id or slug.
    #[serde(default)]
    scene_id: Option<String>,
    /// A frontend's channel instead: its scene, which is made if there is none.
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    channel: Option<String>,
    /// Only plan: nothing is done, and nothing is written into the history.
    #[serde(default)]
    dry_run: bool,
    /// Tell it while it runs, as server-sent events: those of a turn.
    #[serde(default)]
    stream: bool,
}

/// Makes one allowed command of a player's words and gives it. Every outcome is 200; over the player's limit it is 429, and 503
/// `feature_disabled` while the planner is switched off.
#[utoipa::path(tag = "commands", operation_id = "act_as_player", request_body = ActInput,
    params(("c" = String, Path, description = "Campaign id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "What came of it, or with `stream` the turn's events as they come", content((ActView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "It runs; `Prefer: respond-async` was asked for", body = TurnStarted), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/act")]
pub async fn act_as(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<ActInput>,
) -> Result<HttpResponse> {
    let ActInput { player_id, message, scene_id, channel, dry_run, stream } = &body.value;
    let wish = Wish::of(&request, *stream);
    may(&app, &caller, message)?;
    validate::check(&body.value)?;
    let wanted = Wanted {
        campaign: path.into_inner(),
        player: player_id.clone(),
        text: message.trim().to_owned(),
        scene: scene_id.clone(),
        channel: channel.clone(),
        dry_run: *dry_run,
        key: body.idempotency.clone(),
    };
    let (campaign, key) = (wanted.campaign.clone(), wanted.key.clone());
    let run = async move |app: web::Data<App>, caller: Caller, asker: Asker| act(&app, &caller, &wanted, &asker).await;
    respond(app, caller, &campaign, wish, key, run).await
}
