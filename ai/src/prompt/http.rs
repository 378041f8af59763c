//! `POST …/npcs/{x}/prompt` and `POST …/owners/{x}/prompt`: show the prompt that a model would get.

use actix_web::{Responder, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    names::{PromptNames, PromptRequest},
    preview::{Look, Preview, preview},
};
use crate::state::Ai;
use base::error::{Error, Problem, Result};
use edge::{
    caller::Caller,
    http::{Answer, Body, Written, computed, validate},
};
use entity::kind::EntityKind;
use llm::ReplyMode;

/// The player and the action for which to build the prompt.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct PromptInput {
    /// The player character, by id or slug.
    player_id: Option<String>,
    /// A sample action.
    #[garde(length(chars, max = 4000))]
    #[serde(default)]
    action: String,
    reply_mode: Option<ReplyMode>,
}

async fn answer(
    app: &Ai,
    caller: &Caller,
    kind: EntityKind,
    path: (String, String),
    body: Body<PromptInput>,
) -> Result<Written<Preview>> {
    let input = &body.value;
    validate::check(input)?;
    let (campaign, entity) = path;
    let unnamed = || Error::invalid("/player_id", "required", "Name the player character.");
    let player = input.player_id.as_deref().ok_or_else(unnamed)?;
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    let names = PromptNames { campaign: &campaign, kind, entity: &entity, player };
    let wanted = PromptRequest::new(&app.prompts, caller, names, input.reply_mode, &models);
    let look = Look { wanted: &wanted, action: &input.action, choice: None };
    let work = async || Ok(Answer::ok(preview(app, caller, look).await?));
    computed(app, caller, body.idempotency.as_ref(), work).await
}

/// Shows the prompt of an NPC for a player, without calling a model.
#[utoipa::path(post, path = "/v1/campaigns/{c}/npcs/{x}/prompt",
    tag = "prompts", operation_id = "preview_npc_prompt", request_body = PromptInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug")),
    responses((status = 200, body = Preview), (status = "default", body = Problem)))]
pub async fn npc(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<PromptInput>,
) -> Result<impl Responder> {
    answer(&app, &caller, EntityKind::Npc, path.into_inner(), body).await
}

/// Shows the prompt of an owner for a player, without calling a model.
#[utoipa::path(post, path = "/v1/campaigns/{c}/owners/{x}/prompt",
    tag = "prompts", operation_id = "preview_owner_prompt", request_body = PromptInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug")),
    responses((status = 200, body = Preview), (status = "default", body = Problem)))]
pub async fn owner(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<PromptInput>,
) -> Result<impl Responder> {
    answer(&app, &caller, EntityKind::Owner, path.into_inner(), body).await
}
