//! `/v1/users`.

use actix_web::{HttpRequest, web};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::service::{self, UserChange, UserInput, UserView};
use crate::{
    caller::Caller,
    http::{
        Body, NoBody, Reply, answered,
        etag::Expected,
        idempotency::in_flight,
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
pub async fn list(app: web::Data<Edge>, caller: Caller, page: Page<NoFilter>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Reply::ok(&service::list(&tx, &page).await?)
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
) -> Result<Reply> {
    let key = body.idempotency.as_ref();
    match service::invite(&app, &caller, body.value, key).await? {
        Some(view) => UserView { link: view.link.as_deref().map(|path| link(&request, path)), ..view }.created_reply(),
        None => answered(&app, &caller, key).await?.ok_or_else(in_flight),
    }
}

/// The full URL of a link, with the host of the request.
fn link(request: &HttpRequest, path: &str) -> String {
    let info = request.connection_info();
    format!("{}://{}{path}", info.scheme(), info.host())
}

/// A password reset.
#[derive(Serialize, ToSchema)]
pub struct ResetView {
    /// The link. It works once and for a day. Only the first response contains it. Give it only to this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
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
) -> Result<Reply> {
    let replayed = Reply::ok(&ResetView { link: None })?;
    let key = body.idempotency.as_ref();
    match service::reset(&app, &caller, &path, key.map(|key| (key, &replayed))).await? {
        Some(path) => Reply::ok(&ResetView { link: Some(link(&request, &path)) }),
        None => answered(&app, &caller, key).await?.ok_or_else(in_flight),
    }
}

/// One user, by id or email.
#[utoipa::path(get, path = "/v1/users/{x}",
    tag = "users", operation_id = "get_user", params(("x" = String, Path, description = "Id or email")),
    responses((status = 200, body = UserView), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let view = service::get(&tx, &path).await?;
    Ok(Reply::ok(&view)?.versioned(view.version))
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
) -> Result<Reply> {
    let view = service::update(&app, &caller, &Expected::by(&request), &path, &body.value).await?;
    Ok(Reply::ok(&view)?.versioned(view.version))
}
