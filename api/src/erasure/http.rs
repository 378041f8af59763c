//! `/v1/erasures`.

use actix_web::{get, web};
use uuid::Uuid;

use super::{Erasure, service};
use crate::{app::App, auth::Caller, http::Reply};
use base::error::{Error, Problem, Result};
use db::tenancy::TenantTx;

/// Reads the progress of an erasure.
///
/// The answer says nothing about what was erased.
#[utoipa::path(tag = "tenant", operation_id = "get_erasure", params(("x" = String, Path, description = "Id")),
    responses((status = 200, body = Erasure), (status = "default", body = Problem)))]
#[get("/erasures/{x}")]
pub async fn get(app: web::Data<App>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let id = Uuid::try_parse(&path).map_err(|_| Error::not_found("erasure"))?;
    Reply::ok(&service::find(&TenantTx::read(&app.pool, caller.tenant_id()).await?, id).await?)
}
