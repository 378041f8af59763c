//! `/v1/users`.

use actix_web::{HttpRequest, web};
use serde_json::Value;

use super::service::{self, ResetView, UserChange, UserInput, UserView};
use crate::{
    caller::Caller,
    http::{
        Answer, Body, NoBody, Written,
        etag::Expected,
        paging::{Items, ListParams, NoFilter, Page},
    },
    state::Edge,
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;

/// The tenant's users and open invitations.
#[utoipa::path(get, path = "/v1/users",
    tag = "users", operation_id = "list_users", params(ListParams),
    responses((status = 200, body = Items<UserView>), (status = "default", body = Problem)))]
pub async fn list(app: web::Data<Edge>, caller: Caller, page: Page<NoFilter>) -> Result<Answer<Items<UserView>>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Ok(Answer::ok(service::list(&tx, &page).await?))
}

/// Invites somebody. The response contains a link that works once and for seven days. With it, people without an
/// account set a name and a password, and people with an account sign in. Give the link only to the invited person. A
/// replayed response contains no link. If the address is already invited, the new link replaces the old one.
#[utoipa::path(post, path = "/v1/users",
    tag = "users", operation_id = "create_user", request_body = UserInput,
    responses((status = 201, body = UserView), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    body: Body<UserInput>,
) -> Result<Written<UserView>> {
    let invited = service::invite(&app, &caller, body.value, body.idempotency.as_ref()).await?;
    Ok(invited.map(|view| UserView { link: view.link.map(|path| app.address(&request) + &path), ..view }))
}

/// Creates a link with which a user sets a new password. Using it ends all of their sessions. Only for users who belong
/// to no other tenant; others ask the operator. A replayed response contains no link.
#[utoipa::path(post, path = "/v1/users/{x}/reset",
    tag = "users", operation_id = "reset_user", params(("x" = String, Path, description = "Id or email")),
    responses((status = 200, body = ResetView), (status = "default", body = Problem)))]
pub async fn reset(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<NoBody>,
) -> Result<Written<ResetView>> {
    let reset = service::reset(&app, &caller, &path, body.idempotency.as_ref()).await?;
    Ok(reset.map(|view| ResetView { link: view.link.map(|path| app.address(&request) + &path) }))
}

/// One user, by id or email.
#[utoipa::path(get, path = "/v1/users/{x}",
    tag = "users", operation_id = "get_user", params(("x" = String, Path, description = "Id or email")),
    responses((status = 200, body = UserView), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<Answer<UserView>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let view = service::get(&tx, &path).await?;
    Ok(Answer::versioned(view.version, view))
}

/// Changes a user's name or role with a JSON merge patch.
#[utoipa::path(patch, path = "/v1/users/{x}",
    tag = "users", operation_id = "update_user", params(("x" = String, Path, description = "Id or email")),
    request_body(content = UserChange, content_type = "application/merge-patch+json"),
    responses((status = 200, body = UserView), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<Answer<UserView>> {
    let view = service::update(&app, &caller, &Expected::by(&request), &path, &body.value).await?;
    Ok(Answer::versioned(view.version, view))
}
