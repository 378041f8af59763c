//! `/v1/tenant` and `/v1/usage`.

use actix_web::{HttpRequest, web};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    change::{LlmInput, TenantInput, apply},
    service,
    usage::{UsageParams, UsageRow, summed},
};
use crate::tenants::{Features, Settings};
use crate::{
    caller::Caller,
    http::{Answer, Body, etag::Expected, paging},
    state::Edge,
    tenants::TenantLimits,
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;

/// The caller's tenant.
#[derive(Serialize, ToSchema)]
pub struct TenantView {
    id: uuid::Uuid,
    slug: String,
    name: String,
    settings: Settings,
    /// Set by the operator; read-only.
    limits: TenantLimits,
    /// Origins of pages that may call the API from a browser.
    origins: Vec<String>,
    has_llm_api_key: bool,
    version: i64,
}

/// A change of a tenant. `features` and `llm` may also be given without the `settings` around them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a body that `change` reads as `TenantInput`")]
pub struct TenantChange {
    #[schema(inline)]
    #[serde(flatten)]
    tenant: TenantInput,
    features: Option<Features>,
    llm: Option<LlmInput>,
}

/// Reads the caller's tenant: settings and limits.
#[utoipa::path(get, path = "/v1/tenant",
    tag = "tenant", operation_id = "get_tenant",
    responses((status = 200, body = TenantView), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller) -> Result<Answer<Value>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let (version, view) = service::view(&tx, false).await?;
    Ok(Answer::versioned(version, view))
}

/// Changes the tenant's settings by a JSON merge patch.
///
/// `settings.llm.api_key` is write-only and belongs to its endpoint: if `settings.llm.endpoint` changes without a new
/// key, the stored key is removed, and `has_llm_api_key` in the answer is false. Only the operator can change limits.
#[utoipa::path(patch, path = "/v1/tenant",
    tag = "tenant", operation_id = "update_tenant",
    request_body(content = TenantChange, content_type = "application/merge-patch+json"),
    responses((status = 200, body = TenantView), (status = "default", body = Problem)))]
pub async fn change(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    body: Body<Value>,
) -> Result<Answer<Value>> {
    let (version, view) = apply(&app, &caller, &Expected::by(&request), &body.value).await?;
    Ok(Answer::versioned(version, view))
}

/// Sums up the usage by day, campaign, kind, profile, model, task or player.
#[utoipa::path(get, path = "/v1/usage",
    tag = "tenant", operation_id = "get_usage", params(UsageParams),
    responses((status = 200, body = paging::Items<UsageRow>), (status = "default", body = Problem)))]
pub async fn usage(app: web::Data<Edge>, caller: Caller, request: HttpRequest) -> Result<Answer<paging::Items<Value>>> {
    let asked: UsageParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let items = summed(&tx, &asked, caller.campaign).await?;
    Ok(Answer::ok(paging::Items { items, next_cursor: None }))
}
