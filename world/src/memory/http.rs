//! `/campaigns/{c}/memories`, `/npcs/{x}/memories`, `/owners/{x}/memories`, `/broadcasts`.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use edge::auth::player;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    MemoryView,
    broadcasts::{self, BroadcastFilter, BroadcastView},
    change::{MemoryChange, MoveInput, change, move_in},
    list::{self as pages, MemoryFilter, page_of},
    service::{self, GameTime},
    subject::Subject,
};
use crate::actors;
use base::error::{Error, Problem, Result};
use db::tenancy::{self, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Answer, Body, Written,
        etag::Expected,
        paging::{Items, ListParams, Page, RawItems},
        resource::{Ref, campaign_id},
    },
    state::Edge,
};

/// The members of a memory that a client can write.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryInput {
    /// The player character that it is about, by id or slug.
    player_id: String,
    /// At most 2,000 characters.
    #[schema(min_length = 1, max_length = 2000)]
    text: String,
    /// When it happened in the world, such as `second day of the fair`. A blank text is null. Without this member, the campaign's game time.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 120)]
    game_time: Option<Option<String>>,
    /// Whether it gets room in prompts first, up to a quarter of the budget.
    #[serde(default)]
    pinned: bool,
}

/// A member that may be null, as opposed to one that is left out.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// An NPC or owner of a campaign, as named in a path.
struct HolderPath {
    kind: &'static str,
    name: String,
}

async fn holder_id(tx: &TenantTx, campaign: Uuid, holder: &HolderPath) -> Result<Uuid> {
    actors::find(tx, campaign, &[holder.kind], &holder.name).await?.ok_or_else(|| Error::not_found(holder.kind))
}

async fn list(
    app: &Edge,
    caller: &Caller,
    c: &str,
    holder: Option<HolderPath>,
    page: &Page<MemoryFilter>,
) -> Result<Answer<RawItems>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let holder_id = match &holder {
        Some(holder) => Some(holder_id(&tx, campaign, holder).await?),
        None => None,
    };
    Ok(Answer::ok(pages::written(page, page_of(&tx, caller, campaign, holder_id, page).await?)?))
}

async fn create(
    app: &Edge,
    caller: &Caller,
    c: &str,
    holder: HolderPath,
    body: Body<MemoryInput>,
) -> Result<Written<MemoryView>> {
    let MemoryInput { player_id, text, game_time, pinned } = &body.value;
    let text = service::text(text, "/text")?;
    let given = match game_time {
        Some(time) => Some(service::game_time(time.as_deref(), "/game_time")?),
        None => None,
    };
    let game_time = given.as_ref().map_or(GameTime::Now, |time| GameTime::At(time.as_deref()));
    edge::http::write(app, caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
        let holder_id = holder_id(tx, campaign, &holder).await?;
        let player = player::id(tx, campaign, player_id).await?;
        app.limits.check_rows(tx, caller, "memory").await?;
        let new = service::NewMemory {
            campaign,
            holder_type: holder.kind,
            holder: holder_id,
            player: Subject::chosen(player),
            text,
            game_time,
            is_pinned: *pinned,
            source: "editor",
            author: caller.author(),
            turn: None,
        };
        let id = service::insert(tx, &new).await?;
        let view = service::find(tx, campaign, id, None).await?;
        Ok(Answer::created(format!("/v1/campaigns/{campaign}/memories/{id}"), view.version, view))
    })
    .await
}

/// Lists what an NPC remembers.
#[utoipa::path(get, path = "/v1/campaigns/{c}/npcs/{x}/memories",
    tag = "memories", operation_id = "list_npc_memories",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug"), ListParams, MemoryFilter),
    responses((status = 200, body = Items<MemoryView>), (status = "default", body = Problem)))]
pub async fn list_npc(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    page: Page<MemoryFilter>,
) -> Result<impl Responder> {
    let (c, name) = path.into_inner();
    list(&app, &caller, &c, Some(HolderPath { kind: "npc", name }), &page).await
}

/// Lists what an owner remembers.
#[utoipa::path(get, path = "/v1/campaigns/{c}/owners/{x}/memories",
    tag = "memories", operation_id = "list_owner_memories",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug"), ListParams, MemoryFilter),
    responses((status = 200, body = Items<MemoryView>), (status = "default", body = Problem)))]
pub async fn list_owner(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    page: Page<MemoryFilter>,
) -> Result<impl Responder> {
    let (c, name) = path.into_inner();
    list(&app, &caller, &c, Some(HolderPath { kind: "owner", name }), &page).await
}

/// Lists all memories of the campaign.
#[utoipa::path(get, path = "/v1/campaigns/{c}/memories",
    tag = "memories", operation_id = "list_memories",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, MemoryFilter),
    responses((status = 200, body = Items<MemoryView>), (status = "default", body = Problem)))]
pub async fn list_all(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<MemoryFilter>,
) -> Result<impl Responder> {
    list(&app, &caller, &path, None, &page).await
}

/// Adds a memory to an NPC.
#[utoipa::path(post, path = "/v1/campaigns/{c}/npcs/{x}/memories",
    tag = "memories", operation_id = "create_npc_memory", request_body = MemoryInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug")),
    responses((status = 201, body = MemoryView), (status = "default", body = Problem)))]
pub async fn create_npc(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<MemoryInput>,
) -> Result<impl Responder> {
    let (c, name) = path.into_inner();
    create(&app, &caller, &c, HolderPath { kind: "npc", name }, body).await
}

/// Adds a memory to an owner.
#[utoipa::path(post, path = "/v1/campaigns/{c}/owners/{x}/memories",
    tag = "memories", operation_id = "create_owner_memory", request_body = MemoryInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug")),
    responses((status = 201, body = MemoryView), (status = "default", body = Problem)))]
pub async fn create_owner(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<MemoryInput>,
) -> Result<impl Responder> {
    let (c, name) = path.into_inner();
    create(&app, &caller, &c, HolderPath { kind: "owner", name }, body).await
}

/// Reads a memory.
#[utoipa::path(get, path = "/v1/campaigns/{c}/memories/{x}",
    tag = "memories", operation_id = "get_memory",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = MemoryView), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
    let view = service::find(&tx, campaign, path.1, caller.player).await?;
    Answer::versioned(view.version, view).unless_known(&request)
}

/// Locks a memory and returns it with its campaign, after the ETag was checked.
async fn locked(tx: &TenantTx, caller: &Caller, request: &HttpRequest, path: &(String, Uuid)) -> Result<MemoryView> {
    let campaign = campaign_id(tx, caller, &Ref::parse(&path.0)).await?;
    service::hold(tx, campaign, path.1, &Expected::by(request)).await
}

/// Corrects a memory.
///
/// The next prompt contains the corrected text.
#[utoipa::path(patch, path = "/v1/campaigns/{c}/memories/{x}",
    tag = "memories", operation_id = "update_memory",
    request_body(content = MemoryChange, content_type = "application/merge-patch+json"),
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = MemoryView), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<Value>,
) -> Result<impl Responder> {
    let changed = tenancy::write(&app.pool, caller.actor(), async |tx| {
        let current = locked(tx, &caller, &request, &path).await?;
        change(tx, &current, body.value.clone()).await
    });
    let view = changed.await?;
    Ok(Answer::versioned(view.version, view))
}

/// Moves a memory to another NPC or owner, or to another subject.
///
/// A copy of a broadcast then no longer belongs to the broadcast.
#[utoipa::path(post, path = "/v1/campaigns/{c}/memories/{x}/move",
    tag = "memories", operation_id = "move_memory", request_body = MoveInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = MemoryView), (status = "default", body = Problem)))]
pub async fn move_to(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<MoveInput>,
) -> Result<impl Responder> {
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let current = locked(tx, &caller, &request, &path).await?;
        let view = move_in(tx, &current, &body.value).await?;
        Ok(Answer::versioned(view.version, view))
    })
    .await
}

/// Deletes a memory.
///
/// The next prompt no longer contains it.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/memories/{x}",
    tag = "memories", operation_id = "delete_memory",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<impl Responder> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let current = locked(tx, &caller, &request, &path).await?;
        service::remove(tx, current.id).await
    })
    .await?;
    Ok(Answer::no_content())
}

/// Retracts a broadcast: deletes all memories of it.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/broadcasts/{x}",
    tag = "memories", operation_id = "delete_broadcast",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Broadcast id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn retract(app: web::Data<Edge>, caller: Caller, path: web::Path<(String, Uuid)>) -> Result<impl Responder> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        service::retract(tx, campaign, path.1).await
    })
    .await?;
    Ok(Answer::no_content())
}

/// Lists broadcasts.
///
/// The oldest come first; use `sort=-created_at` for the newest.
#[utoipa::path(get, path = "/v1/campaigns/{c}/broadcasts",
    tag = "memories", operation_id = "list_broadcasts",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, BroadcastFilter),
    responses((status = 200, body = Items<BroadcastView>), (status = "default", body = Problem)))]
pub async fn list_broadcasts(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<BroadcastFilter>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let found = broadcasts::page_of(&tx, &caller, campaign, &page).await?;
    Ok(Answer::ok(page.serialize_items(found, broadcasts::key, Ok)?))
}
