//! The routes of `/v1/models`.

use actix_web::{HttpRequest, web};
use serde_json::Value;

use super::{
    probe::{self, AvailableModel, TestView},
    service::{self, ModelInput, ModelView},
};
use crate::{
    caller::Caller,
    http::{
        Answer, Body, NoBody, Written, computed,
        etag::Expected,
        paging::{Items, ListParams, NoFilter, Page},
    },
    state::Edge,
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;

/// Lists the tenant's model profiles.
#[utoipa::path(get, path = "/v1/models",
    tag = "models", operation_id = "list_models", params(ListParams),
    responses((status = 200, body = Items<ModelView>), (status = "default", body = Problem)))]
pub async fn list(app: web::Data<Edge>, caller: Caller, page: Page<NoFilter>) -> Result<Answer<Items<ModelView>>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Ok(Answer::ok(service::list(&app, &tx, &page).await?))
}

/// Creates a model profile: which endpoint and model to ask, and how.
///
/// Campaigns choose among profiles in `settings.models`, and the tenant in its own `settings.models`. An endpoint must be public and use
/// https, unless the operator allows others.
#[utoipa::path(post, path = "/v1/models",
    tag = "models", operation_id = "create_model", request_body = ModelInput,
    responses((status = 201, body = ModelView), (status = "default", body = Problem)))]
pub async fn create(app: web::Data<Edge>, caller: Caller, body: Body<ModelInput>) -> Result<Written<ModelView>> {
    service::create(&app, &caller, &body.value, body.idempotency.as_ref()).await
}

/// Reads one model profile, by id or slug.
#[utoipa::path(get, path = "/v1/models/{x}",
    tag = "models", operation_id = "get_model", params(("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = ModelView), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<Answer<ModelView>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let view = service::get(&app, &tx, &path).await?;
    Ok(Answer::versioned(view.version, view))
}

/// Changes a model profile by a JSON merge patch.
///
/// `api_key` is write-only and belongs to its endpoint: if `endpoint` changes without a new key, the stored key is removed.
#[utoipa::path(patch, path = "/v1/models/{x}",
    tag = "models", operation_id = "update_model", params(("x" = String, Path, description = "Id or slug")),
    request_body(content = ModelInput, content_type = "application/merge-patch+json"),
    responses((status = 200, body = ModelView), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<Answer<ModelView>> {
    let view = service::update(&app, &caller, &Expected::by(&request), &path, &body.value).await?;
    Ok(Answer::versioned(view.version, view))
}

/// Deletes a model profile. A profile that something names is not deleted; the error lists who names it.
#[utoipa::path(delete, path = "/v1/models/{x}",
    tag = "models", operation_id = "delete_model", params(("x" = String, Path, description = "Id or slug")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<Answer<()>> {
    service::delete(&app, &caller, &Expected::by(&request), &path).await?;
    Ok(Answer::no_content())
}

/// Asks a profile's endpoint for the models that it offers. This counts as a turn in the tenant's limits.
#[utoipa::path(get, path = "/v1/models/{x}/available",
    tag = "models", operation_id = "list_available_models", params(("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = Items<AvailableModel>), (status = "default", body = Problem)))]
pub async fn available(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
) -> Result<Answer<Items<AvailableModel>>> {
    let (_, endpoint) = service::endpoint(&app, &caller, &path).await?;
    let items = probe::available(&app, &caller, &endpoint).await?;
    Ok(Answer::ok(Items { items, next_cursor: None }))
}

/// Tries a profile: asks its model a few short questions, and says what works there.
///
/// The calls cost tokens at the provider. A test counts as a turn in the tenant's limits, and takes
/// at most as long as one call of the model may (`timeouts.total_ms`). Nothing is stored: to keep what was found, write it into the profile's `supports`.
#[utoipa::path(post, path = "/v1/models/{x}/test",
    tag = "models", operation_id = "test_model", params(("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = TestView), (status = "default", body = Problem)))]
pub async fn test(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<NoBody>,
) -> Result<Written<TestView>> {
    computed(&app, &caller, body.idempotency.as_ref(), async || {
        let (slug, endpoint) = service::endpoint(&app, &caller, &path).await?;
        Ok(Answer::ok(probe::test(&app, &caller, &slug, &endpoint).await?))
    })
    .await
}
