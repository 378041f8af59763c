//! `/campaigns/{c}/characters`.

use actix_web::{HttpRequest, Responder, web};
use entity::character;

use super::{CharacterFilter, CharacterInput, Characters};
use crate::erasure::{self, EraseParams, Erasure};
use base::error::Result;
use edge::{
    http::{etag::Expected, paging, resource},
    world_routes_but_delete,
};

world_routes_but_delete!(
    Characters,
    CharacterInput,
    character::Model,
    CharacterFilter,
    "character",
    "characters",
    "/v1/campaigns/{c}/characters",
    "/v1/campaigns/{c}/characters/{x}"
);

crate::revision_routes!(
    Characters,
    character::Model,
    "character",
    "characters",
    "/v1/campaigns/{c}/characters/{x}/revisions",
    "/v1/campaigns/{c}/characters/{x}/revisions/{seq}/restore"
);

/// Deletes a character.
///
/// With `erase=true` every copy is erased too: journal, what the player wrote, traces, stored answers, memories.
#[utoipa::path(
    delete, path = "/v1/campaigns/{c}/characters/{x}",
    tag = "characters", operation_id = "delete_character",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug; with `erase` also the id of a deleted character"),
           EraseParams),
    responses((status = 204), (status = 202, description = "The erasure is still running; `Location` is its URL", body = Erasure),
        (status = "default", body = base::error::Problem)),
)]
pub async fn delete(
    app: web::Data<edge::state::Edge>,
    caller: edge::caller::Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<impl Responder> {
    let asked: EraseParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    if asked.erase {
        let expected = Expected::by(&request);
        let erased = erasure::service::character(&app, &caller, &expected, (&path.0, &path.1), &asked).await?;
        return Ok(erasure::http::answer(erased));
    }
    let gone = resource::delete::<Characters>(&app, &caller, &request, Some(&path.0), &path.1).await?;
    Ok(gone.map(|()| None))
}
