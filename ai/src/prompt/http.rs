//! `POST …/npcs/{x}/prompt` and `POST …/owners/{x}/prompt`: show the prompt that a model would get. `GET …/memories/search`: what a text
//! recalls.

use actix_web::{HttpRequest, Responder, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    names::{PromptNames, PromptRequest},
    preview::{Look, Preview, preview},
    search::{self, FoundMemory},
};
use crate::state::Ai;
use base::error::{Error, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body, Written, computed,
        paging::{self, Items},
        resource::{Ref, campaign_id},
        validate,
    },
};
use entity::kind::EntityKind;
use llm::ReplyMode;
use world::memory::whose::Whose;

const FOUND_MAX: usize = 50;
const FOUND_USUALLY: usize = 10;

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

/// What to search for, and in whose memories.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SearchParams {
    /// A text in the player's words, of at most 500 characters.
    #[param(required = true, value_type = String, min_length = 1, max_length = 500, example = "the grey horse that Alice left")]
    q: Option<String>,
    /// Only memories of this NPC or owner, by id or slug.
    holder_id: Option<String>,
    /// Only memories about this player character, by id or slug.
    player_id: Option<String>,
    /// How many memories at most.
    #[param(minimum = 1, maximum = 50, default = 10)]
    limit: Option<usize>,
}

/// Searches memories.
///
/// The best come first; there are no further pages. Memories that have nothing to do with the query are left out. If a holder is named, misspelt
/// words and other endings are found. Without a holder, only memories with a word that begins like one of the query's are ranked, 2,000 at most.
#[utoipa::path(get, path = "/v1/campaigns/{c}/memories/search",
    tag = "memories", operation_id = "search_memories",
    params(("c" = String, Path, description = "Campaign id or slug"), SearchParams),
    responses((status = 200, body = Items<FoundMemory>), (status = "default", body = Problem)))]
pub async fn search_memories(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<impl Responder> {
    let asked: SearchParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let tx = TenantTx::read_at_one_moment(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let query = search::query(asked.q.as_deref())?;
    let limit = asked.limit.unwrap_or(FOUND_USUALLY);
    if !(1..=FOUND_MAX).contains(&limit) {
        return Err(paging::bad("limit", "must be from 1 to 50"));
    }
    let names = (asked.holder_id.as_deref(), asked.player_id.as_deref());
    let items = match Whose::named(&tx, &caller, campaign, names).await? {
        Some(whose) => search::find((&app.prompts.corpora, &tx, campaign), whose, query, limit, |_| true).await?,
        None => Vec::new(),
    };
    Ok(Answer::ok(Items { items, next_cursor: None }))
}
