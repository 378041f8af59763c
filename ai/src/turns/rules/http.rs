//! `POST …/rules/resolve`.

use actix_web::{HttpRequest, HttpResponse, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{job::RulesJob, resolution::Resolution, run};
use crate::{
    state::Ai,
    turns::{
        http::action_fits,
        running::Asker,
        start::{TurnStarted, Wish, respond},
    },
};
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{Body, validate},
};
use llm::ReplyMode;

/// A player's action for the rules to decide.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ResolveInput {
    /// The acting player character, by id or slug.
    player_id: String,
    #[garde(custom(action_fits))]
    #[schema(min_length = 1, max_length = 4000)]
    action: String,
    /// Dice rolled by hand, in the order in which they are used. Needs the scope `gm`.
    dice: Option<Vec<u32>>,
    /// Whether to only show the result.
    #[serde(default)]
    preview: bool,
    /// Whether to answer with server-sent events, as `GET …/turns/{id}/events` does.
    #[serde(default)]
    stream: bool,
    reply_mode: Option<ReplyMode>,
}

/// Lets a model say which check an action needs, and the rules decide it. If the model names none, there is no check.
#[utoipa::path(post, path = "/v1/campaigns/{c}/rules/resolve",
    tag = "rules", operation_id = "resolve_action", request_body = ResolveInput,
    params(("c" = String, Path, description = "Campaign id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The outcome, or with `stream` the turn's events as they come", content((Resolution = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn resolve(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<ResolveInput>,
) -> Result<HttpResponse> {
    validate::check(&body.value)?;
    let ResolveInput { player_id, action, dice, preview, stream, reply_mode } = body.value;
    if dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    let job = RulesJob {
        campaign: path.into_inner(),
        player: player_id,
        action,
        mode: reply_mode,
        dice,
        preview,
        key: body.idempotency,
        command: None,
        answer: |resolution, _| Ok((resolution, Vec::new())),
    };
    let wish = Wish::of(&request, stream);
    let (campaign, key) = (job.campaign.clone(), job.key.clone());
    let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| run(&app, &caller, &job, &asker).await;
    respond(app, caller, &campaign, wish, key, run).await
}
