//! `/campaigns/{c}/npcs`.

use actix_web::{HttpRequest, Responder, web};
use entity::npc;

use super::{NpcFilter, NpcInput, Npcs, draft::decide};
use crate::guidance::draft;
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{Body, NoBody},
    state::Edge,
    world_routes,
};

world_routes!(
    Npcs,
    NpcInput,
    npc::Model,
    NpcFilter,
    "npc",
    "npcs",
    "/v1/campaigns/{c}/npcs",
    "/v1/campaigns/{c}/npcs/{x}"
);

crate::revision_routes!(
    Npcs,
    npc::Model,
    "npc",
    "npcs",
    "/v1/campaigns/{c}/npcs/{x}/revisions",
    "/v1/campaigns/{c}/npcs/{x}/revisions/{seq}/restore"
);

#[utoipa::path(
    post, path = "/v1/campaigns/{c}/npcs/{x}/instructions/accept",
    tag = "npcs", operation_id = "accept_npc_instructions",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = npc::Model), (status = "default", body = Problem)),
)]
/// Accepts an NPC's draft.
///
/// Moves each member of `pending_instructions` to the NPC's own member of the same name. A tool takes the place of the
/// entry of the same name, or is added. The draft is then null. 409 `conflict` without a draft.
pub async fn accept(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    decide(&app, &caller, &request, &path, &body, draft::accepted).await
}

#[utoipa::path(
    post, path = "/v1/campaigns/{c}/npcs/{x}/instructions/discard",
    tag = "npcs", operation_id = "discard_npc_instructions",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = npc::Model), (status = "default", body = Problem)),
)]
/// Discards an NPC's draft.
///
/// Sets `pending_instructions` to null. 409 `conflict` without a draft.
pub async fn discard(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    decide(&app, &caller, &request, &path, &body, draft::discarded).await
}
