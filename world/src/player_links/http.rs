//! Routes for player links.

use actix_web::{HttpRequest, web};

use super::service::{Place, PlayerLink, PlayerLinkInput, VERSION};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body, Written,
        etag::Expected,
        paging::{Items, ListParams, NoFilter, Page},
        resource::Ref,
    },
    state::Edge,
};

/// Lists the links with which players open the table in a browser.
///
/// Revoked links are left out, also those whose API key is no longer valid. `q` searches names, and the names and slugs of characters.
#[utoipa::path(get, path = "/v1/campaigns/{c}/player-links",
    tag = "player-links", operation_id = "list_player_links",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams),
    responses((status = 200, body = Items<PlayerLink>), (status = "default", body = Problem)))]
pub async fn list(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    page: Page<NoFilter>,
) -> Result<Answer<Items<PlayerLink>>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let (campaign, address) = (Ref::parse(&path), app.address(&request));
    let place = Place { app: &app, caller: &caller, campaign: &campaign, address: &address };
    Ok(Answer::ok(place.list(&tx, &page).await?))
}

/// Makes a link for one character. Whoever opens it plays that character and sees what it may see, without an account.
///
/// The link has the scopes `read` and `play` of an API key of the tenant, and ends with that key. If there is none, a caller with the scope
/// `admin` gets one. A replayed answer does not show the link.
#[utoipa::path(post, path = "/v1/campaigns/{c}/player-links",
    tag = "player-links", operation_id = "create_player_link", request_body = PlayerLinkInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 201, body = PlayerLink), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<PlayerLinkInput>,
) -> Result<Written<PlayerLink>> {
    let (campaign, address) = (Ref::parse(&path), app.address(&request));
    let place = Place { app: &app, caller: &caller, campaign: &campaign, address: &address };
    place.create(&body.value, body.idempotency.as_ref()).await
}

/// Reads one link.
#[utoipa::path(get, path = "/v1/campaigns/{c}/player-links/{x}",
    tag = "player-links", operation_id = "get_player_link",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = uuid::Uuid, Path, description = "Id")),
    responses((status = 200, body = PlayerLink), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<Answer<PlayerLink>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let (campaign, address) = (Ref::parse(&path.0), app.address(&request));
    let place = Place { app: &app, caller: &caller, campaign: &campaign, address: &address };
    Ok(Answer::versioned(VERSION, place.get(&tx, &path.1).await?))
}

/// Revokes a link. Tables that are open with it say so within five seconds.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/player-links/{x}",
    tag = "player-links", operation_id = "delete_player_link",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = uuid::Uuid, Path, description = "Id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn revoke(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<Answer<()>> {
    let campaign = Ref::parse(&path.0);
    let place = Place { app: &app, caller: &caller, campaign: &campaign, address: "" };
    place.revoke(&Expected::by(&request), &path.1).await?;
    Ok(Answer::no_content())
}
