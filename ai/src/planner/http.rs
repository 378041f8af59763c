//! `POST …/act`.

use actix_web::{HttpRequest, HttpResponse, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    act::act,
    answer::ActView,
    request::{ActRequest, may},
};
use crate::{
    state::Ai,
    turns::{
        running::Asker,
        start::{TurnStarted, Wish, respond},
    },
};
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{Body, validate},
};

/// A player's text.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ActInput {
    /// The player character who acts, by id or slug.
    player_id: String,
    #[schema(min_length = 1, max_length = 2000)]
    message: String,
    /// The scene in which it happens, by id or slug.
    #[serde(default)]
    scene_id: Option<String>,
    /// A frontend's channel, instead of `scene_id`. The scene of this channel is used, and created if it does not exist.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    channel: Option<String>,
    /// Whether to only plan: nothing is done, and nothing is written into the history.
    #[serde(default)]
    dry_run: bool,
    /// Whether to stream the turn's events while it runs, as server-sent events.
    #[serde(default)]
    stream: bool,
}

/// Turns a player's words into one allowed command and carries it out. Every outcome is 200. Above the player's rate
/// limit, the answer is 429. While the planner is switched off, it is 503 `feature_disabled`.
#[utoipa::path(post, path = "/v1/campaigns/{c}/act",
    tag = "commands", operation_id = "act_as_player", request_body = ActInput,
    params(("c" = String, Path, description = "Campaign id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The outcome, or with `stream` the turn's events as they come", content((ActView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn act_as(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<ActInput>,
) -> Result<HttpResponse> {
    let ActInput { player_id, message, scene_id, channel, dry_run, stream } = &body.value;
    let wish = Wish::of(&request, *stream);
    may(&app, &caller, message)?;
    validate::check(&body.value)?;
    let wanted = ActRequest {
        campaign: path.into_inner(),
        player: player_id.clone(),
        text: message.trim().to_owned(),
        scene: scene_id.clone(),
        channel: channel.clone(),
        dry_run: *dry_run,
        key: body.idempotency.clone(),
    };
    let (campaign, key) = (wanted.campaign.clone(), wanted.key.clone());
    let turns = app.clone();
    let run = async move |_, caller: Caller, asker: Asker| act(&app, &caller, &wanted, &asker).await;
    respond(turns, caller, &campaign, wish, key, run).await
}
