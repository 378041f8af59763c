//! Accepting and discarding what a character card brought for an NPC.

use actix_web::{HttpRequest, Responder, web};
use entity::npc;

use super::Npcs;
use crate::guidance::draft::{self, Members};
use base::error::{Code, Error, Problem, Result};
use edge::{
    caller::Caller,
    http::{
        self, Answer, Body, NoBody, Written,
        etag::Expected,
        resource::{self, Ref, Resource, Shown},
    },
    state::Edge,
};

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

/// Changes the NPC by what `patch` makes of the row as it is.
async fn decide(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    (c, x): &(String, String),
    body: &Body<NoBody>,
    patch: fn(&Members) -> Option<Members>,
) -> Result<Written<Shown<npc::Model>>> {
    let expected = Expected::by(request);
    http::write(app, caller, body.idempotency.as_ref(), async |tx| {
        let npc = resource::hold::<Npcs>(tx, caller, Some(&Ref::parse(c)), &Ref::parse(x)).await?;
        expected.check(Npcs::stamp(&npc).version)?;
        let row = resource::plain_columns(&npc)?;
        let changes = patch(&row).ok_or_else(|| Error::new(Code::Conflict, "This NPC has no draft."))?;
        let npc = resource::change_held::<Npcs>(app, caller, tx, npc, changes.into()).await?;
        Ok(Answer::versioned(npc.version, resource::shown::<Npcs>(npc, caller)))
    })
    .await
}
