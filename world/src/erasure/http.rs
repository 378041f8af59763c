//! `/v1/erasures`, and the removal of a user, which may erase their words.

use actix_web::{HttpRequest, Responder, web};
use uuid::Uuid;

use super::{EraseParams, Erasure, Progress, service};
use base::error::{Error, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{Answer, etag::Expected, paging},
    state::Edge,
    users,
};

/// Reads the progress of an erasure.
///
/// The answer says nothing about what was erased.
#[utoipa::path(get, path = "/v1/erasures/{x}",
    tag = "tenant", operation_id = "get_erasure", params(("x" = String, Path, description = "Id")),
    responses((status = 200, body = Erasure), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<impl Responder> {
    let id = Uuid::try_parse(&path).map_err(|_| Error::not_found("erasure"))?;
    Ok(Answer::ok(service::find(&TenantTx::read(&app.pool, caller.tenant_id()).await?, id).await?))
}

/// The answer to a request that began an erasure: 204 if it is done already, otherwise 202 with its URL.
pub fn answer(erasure: Erasure) -> Answer<Option<Erasure>> {
    match erasure.status {
        Progress::Done => Answer::no_content().map(|()| None),
        Progress::Running => {
            let location = format!("/v1/erasures/{}", erasure.id);
            Answer::accepted(Some(erasure)).at(location)
        }
    }
}

/// Removes a user from the tenant, or withdraws an invitation. The account of a user who belongs to no other tenant is
/// deleted. With `erase=true`, their words are also removed from every table.
#[utoipa::path(delete, path = "/v1/users/{x}",
    tag = "users", operation_id = "delete_user",
    params(("x" = String, Path, description = "Id or email"), EraseParams),
    responses((status = 204),
        (status = 202, description = "The erasure continues in the background. Its status is at `Location`.", body = Erasure),
        (status = "default", body = Problem)))]
pub async fn delete_user(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<impl Responder> {
    let asked: EraseParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    if asked.erase {
        return Ok(answer(service::user(&app, &caller, &Expected::by(&request), &path, &asked).await?));
    }
    users::service::leave(&app, &caller, &Expected::by(&request), &path).await?;
    Ok(Answer::no_content().map(|()| None))
}
