//! `/campaigns/{c}/messages`.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use entity::{MessageId, message};
use uuid::Uuid;

use super::{MessageFilter, MessageInput, MessagePatch, Messages, correct::correct};
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
        etag::Expected,
        paging::{Items, ListParams, Page},
        resource::{self, Ref},
        validate,
    },
    state::Edge,
};

/// Lists the campaign's messages.
#[utoipa::path(get, path = "/v1/campaigns/{c}/messages",
    tag = "messages", operation_id = "list_messages",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, MessageFilter),
    responses((status = 200, body = Items<message::Model>), (status = "default", body = Problem)))]
pub async fn list(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<MessageFilter>,
) -> Result<impl Responder> {
    resource::list::<Messages>(&app, &caller, Some(&path), &page).await
}

/// Adds a message.
#[utoipa::path(post, path = "/v1/campaigns/{c}/messages",
    tag = "messages", operation_id = "create_message", request_body = MessageInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 201, body = message::Model), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<MessageInput>,
) -> Result<impl Responder> {
    let sent = (&body.value, body.idempotency.as_ref());
    resource::create::<Messages>(&app, &caller, Some(&path), request.path(), sent).await
}

/// Reads a message.
#[utoipa::path(get, path = "/v1/campaigns/{c}/messages/{x}",
    tag = "messages", operation_id = "get_message",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id")),
    responses((status = 200, body = message::Model), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse> {
    resource::get::<Messages>(&app, &caller, &request, Some(&path.0), &path.1.to_string()).await
}

/// Corrects what a message says. Later prompts have the corrected text.
///
/// The answer of an NPC or owner is corrected in its turn (`PATCH …/turns/{id}`). A message about dice cannot be corrected.
#[utoipa::path(patch, path = "/v1/campaigns/{c}/messages/{x}",
    tag = "messages", operation_id = "update_message", request_body(content = MessagePatch, content_type = "application/merge-patch+json"),
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id")),
    responses((status = 200, body = message::Model), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<MessagePatch>,
) -> Result<impl Responder> {
    validate::check(&body.value)?;
    let at = (&Ref::parse(&path.0), MessageId(path.1));
    let corrected = correct(&app, &caller, at, &body.value.content, &Expected::by(&request)).await?;
    Ok(Answer::versioned(corrected.version, corrected))
}

/// Deletes a message.
///
/// A transcript that contained it is rebuilt without it.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/messages/{x}",
    tag = "messages", operation_id = "delete_message",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<impl Responder> {
    resource::delete::<Messages>(&app, &caller, &request, Some(&path.0), &path.1.to_string()).await
}
