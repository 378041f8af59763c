//! `/v1/campaigns`.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use entity::campaign;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::{
    CampaignInput, Campaigns,
    fork::{self, ForkInput},
    models,
};
use crate::journal;
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
        paging::{self, Items, ListParams, NoFilter, Page},
        resource,
    },
    state::Edge,
};

/// Lists the tenant's campaigns.
#[utoipa::path(get, path = "/v1/campaigns",
    tag = "campaigns", operation_id = "list_campaigns", params(ListParams),
    responses((status = 200, body = Items<campaign::Model>), (status = "default", body = Problem)))]
pub async fn list(app: web::Data<Edge>, caller: Caller, page: Page<NoFilter>) -> Result<impl Responder> {
    resource::list::<Campaigns>(&app, &caller, None, &page).await
}

/// Creates a campaign.
#[utoipa::path(post, path = "/v1/campaigns",
    tag = "campaigns", operation_id = "create_campaign", request_body = CampaignInput,
    responses((status = 201, body = campaign::Model), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    body: Body<CampaignInput>,
) -> Result<impl Responder> {
    models::check(&app, &caller, body.value.settings.get("models")).await?;
    let sent = (&body.value, body.idempotency.as_ref());
    resource::create::<Campaigns>(&app, &caller, None, request.path(), sent).await
}

/// Reads a campaign.
#[utoipa::path(get, path = "/v1/campaigns/{c}",
    tag = "campaigns", operation_id = "get_campaign", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = campaign::Model), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<HttpResponse> {
    resource::get::<Campaigns>(&app, &caller, &request, None, &path).await
}

/// Changes a campaign by a JSON merge patch.
#[utoipa::path(patch, path = "/v1/campaigns/{c}",
    tag = "campaigns", operation_id = "update_campaign", params(("c" = String, Path, description = "Campaign id or slug")),
    request_body(content = CampaignInput, content_type = "application/merge-patch+json"),
    responses((status = 200, body = campaign::Model), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<impl Responder> {
    models::check(&app, &caller, body.value.pointer("/settings/models")).await?;
    resource::patch::<Campaigns>(&app, &caller, &request, None, &path, body.value).await
}

/// Deletes a campaign and everything in it.
#[utoipa::path(delete, path = "/v1/campaigns/{c}",
    tag = "campaigns", operation_id = "delete_campaign", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<impl Responder> {
    resource::delete::<Campaigns>(&app, &caller, &request, None, &path).await
}

/// Which part of the journal to read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ChangesParams {
    /// The `seq` of the last change that the client has; 0 reads from the beginning.
    #[param(minimum = 0)]
    after: i64,
    /// Changes per page, 1 to 200. By default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Reads the journal from a position: every change of the world, in the order of commits, without gaps.
///
/// Without the scope `gm`, and for players, it contains only the messages that the caller may read.
#[utoipa::path(get, path = "/v1/campaigns/{c}/changes",
    tag = "campaigns", operation_id = "list_changes",
    params(("c" = String, Path, description = "Campaign id or slug"), ChangesParams),
    responses((status = 200, body = journal::Changes), (status = "default", body = Problem)))]
pub async fn changes(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<impl Responder> {
    let asked: ChangesParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    Ok(Answer::ok(journal::changes(&app, &caller, &path, asked.after, asked.limit.unwrap_or(50)).await?))
}

/// Forks a campaign with everything in it.
///
/// Secrets are copied too, so this requires the scope `gm` in addition to `write`.
#[utoipa::path(post, path = "/v1/campaigns/{c}/fork",
    tag = "campaigns", operation_id = "fork_campaign", params(("c" = String, Path, description = "Campaign id or slug")),
    request_body = ForkInput, responses((status = 201, body = campaign::Model), (status = "default", body = Problem)))]
pub async fn fork(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<ForkInput>,
) -> Result<impl Responder> {
    fork::fork(&app, &caller, &path, &body.value, body.idempotency.as_ref()).await
}
