//! `/v1/users`.

use actix_web::{HttpRequest, delete, get, patch, post, web};
use serde_json::Value;

use super::service::{self, UserChange, UserInput, UserView};
use crate::{
    app::App,
    auth::Caller,
    erasure::{self, EraseParams, Erasure},
    error::{Problem, Result},
    http::{
        Body, Reply, answered,
        etag::Expected,
        idempotency::in_flight,
        paging::{self, Items, ListParams, NoFilter, Page},
    },
    tenancy::TenantTx,
};

/// The tenant's users.
#[utoipa::path(tag = "users", operation_id = "list_users", params(ListParams),
    responses((status = 200, body = Items<UserView>), (status = "default", body = Problem)))]
#[get("/users")]
pub async fn list(app: web::Data<App>, caller: Caller, page: Page<NoFilter>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Reply::ok(&service::list(&tx, &page).await?)
}

/// Makes a user. A password that the server made is in this answer only; replayed, it holds none. A request that gives a password
/// is not replayed: an email has one user.
#[utoipa::path(tag = "users", operation_id = "create_user", request_body = UserInput,
    responses((status = 201, body = UserView), (status = "default", body = Problem)))]
#[post("/users")]
pub async fn create(app: web::Data<App>, caller: Caller, body: Body<UserInput>) -> Result<Reply> {
    // A key keeps a quick hash of the body: none of one that holds a password.
    let key = body.idempotency.filter(|_| body.value.password.is_none());
    match service::create(&app, &caller, body.value, key.as_ref()).await? {
        Some(view) => view.made(),
        None => answered(&app, &caller, key.as_ref()).await?.ok_or_else(in_flight),
    }
}

/// One user, by id or email.
#[utoipa::path(tag = "users", operation_id = "get_user", params(("x" = String, Path, description = "Id or email")),
    responses((status = 200, body = UserView), (status = "default", body = Problem)))]
#[get("/users/{x}")]
pub async fn get(app: web::Data<App>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let view = service::get(&tx, &path).await?;
    Ok(Reply::ok(&view)?.versioned(view.version))
}

/// Changes a user's name, role or password by a JSON merge patch.
#[utoipa::path(tag = "users", operation_id = "patch_user", params(("x" = String, Path, description = "Id or email")),
    request_body(content = UserChange, content_type = "application/merge-patch+json"),
    responses((status = 200, body = UserView), (status = "default", body = Problem)))]
#[patch("/users/{x}")]
pub async fn patch(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<Reply> {
    let view = service::update(&app, &caller, &Expected::by(&request), &path, &body.value).await?;
    Ok(Reply::ok(&view)?.versioned(view.version))
}

/// Takes a user out of the tenant; who belongs to no other is forgotten. With `erase=true` their words leave every table as well.
#[utoipa::path(tag = "users", operation_id = "delete_user",
    params(("x" = String, Path, description = "Id or email"), EraseParams),
    responses((status = 204), (status = 202, description = "The erasure goes on: ask at `Location`", body = Erasure),
        (status = "default", body = Problem)))]
#[delete("/users/{x}")]
pub async fn delete(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<Reply> {
    let asked: EraseParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    if asked.erase {
        return erasure::service::user(&app, &caller, &Expected::by(&request), &path, &asked).await;
    }
    service::leave(&app, &caller, &Expected::by(&request), &path).await?;
    Ok(Reply::no_content())
}
