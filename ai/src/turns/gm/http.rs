//! `POST …/sessions/{x}/turns` and `POST …/sessions/{x}/prompt`.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use entity::session::Role;
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{job::GmJob, preview::Look, run};
use crate::{
    prompt::preview::Preview,
    state::Ai,
    turns::{
        http::action_fits,
        job::{OnBusy, OnFailure},
        running::Asker,
        start::{TurnStarted, Wish, respond},
        view::TurnView,
    },
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body, computed,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
        validate,
    },
};
use llm::ReplyMode;

/// The request for a turn of a session's AI.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct GmTurnInput {
    /// An instruction to the AI for this turn.
    #[garde(inner(custom(action_fits)))]
    #[schema(min_length = 1, max_length = 4000)]
    instruction: Option<String>,
    /// Another role than the session's, only for this turn.
    #[schema(inline)]
    role: Option<Role>,
    /// Whether to answer with server-sent events, as `GET …/turns/{id}/events` does.
    #[serde(default)]
    stream: bool,
    /// The most model calls, 1 to 32; never more than the operator allows.
    #[garde(range(min = 1, max = 32))]
    #[schema(minimum = 1, maximum = 32)]
    max_steps: Option<u32>,
    /// Dice rolled by hand, at most 1,000. The AI's rolls use them in order before the server rolls.
    #[garde(inner(length(max = 1000)))]
    dice: Option<Vec<u32>>,
    reply_mode: Option<ReplyMode>,
    /// A rules turn of this campaign. Its decision is a fact for the AI's answer.
    mechanics_turn_id: Option<Uuid>,
    #[serde(default)]
    on_busy: OnBusy,
    #[serde(default)]
    on_failure: OnFailure,
}

impl GmTurnInput {
    /// The job for this turn.
    #[must_use]
    pub fn job(self, campaign: String, session: Uuid, key: Option<IdempotencyKey>) -> GmJob {
        GmJob {
            campaign,
            session,
            instruction: self.instruction,
            role: self.role,
            steps_max: self.max_steps,
            mechanics: self.mechanics_turn_id,
            dice: self.dice,
            mode: self.reply_mode,
            on_busy: self.on_busy,
            on_failure: self.on_failure,
            key,
        }
    }
}

/// Lets the session's AI take its turn: as game master, as a game master's assistant, or as a player. Until a turn has completed,
/// the AI gets an overview of the world; after that, only what changed.
#[utoipa::path(post, path = "/v1/campaigns/{c}/sessions/{x}/turns",
    tag = "turns", operation_id = "create_session_turn", request_body = GmTurnInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Session id"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn turn(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<GmTurnInput>,
) -> Result<HttpResponse> {
    validate::check(&body.value)?;
    let wish = Wish::of(&request, body.value.stream);
    let (campaign, session) = path.into_inner();
    let job = body.value.job(campaign, session, body.idempotency);
    let (campaign, key) = (job.campaign.clone(), job.key.clone());
    let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| run(&app, &caller, &job, &asker).await;
    respond(app, caller, &campaign, wish, key, run).await
}

/// The request for a preview of a session's prompt.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct GmPromptInput {
    /// A sample instruction.
    #[garde(length(chars, max = 4000))]
    instruction: Option<String>,
    /// The same as `instruction`, under the name that the other previews use.
    #[garde(length(chars, max = 4000))]
    action: Option<String>,
    #[schema(inline)]
    role: Option<Role>,
    reply_mode: Option<ReplyMode>,
    /// Accepted because the other previews have it. A session's prompt does not depend on a player.
    #[serde(rename = "player_id")]
    _player_id: Option<String>,
}

/// Shows the prompt that the session's AI would get now, without calling a model. This does not move the cursor.
#[utoipa::path(post, path = "/v1/campaigns/{c}/sessions/{x}/prompt",
    tag = "prompts", operation_id = "preview_session_prompt", request_body = GmPromptInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Session id")),
    responses((status = 200, body = Preview), (status = "default", body = Problem)))]
pub async fn preview(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<GmPromptInput>,
) -> Result<impl Responder> {
    validate::check(&body.value)?;
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    let work = async || {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
        let instruction = body.value.instruction.as_deref().or(body.value.action.as_deref());
        let GmPromptInput { role, reply_mode, .. } = body.value;
        let choice = None;
        let look = Look { campaign, session: path.1, role, mode: reply_mode, models: &models, choice, instruction };
        let caches = (&app.prompts, &app.llm);
        Ok(Answer::ok(super::preview::preview_in(caches, Some(&app.session_prompts), &tx, &look).await?))
    };
    computed(&app, &caller, body.idempotency.as_ref(), work).await
}
