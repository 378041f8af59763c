//! `GET /v1/campaigns/{c}/bridge`: the upgrade to a WebSocket. What frontends report over REST.

use actix_web::{HttpRequest, HttpResponse, Responder, http::header, web};
use serde_json::Value;
use uuid::Uuid;

use super::{
    connect::Upgrade,
    reports::{self, EventsInput, EventsTaken, SessionPath},
    socket,
};
use crate::{frontends::frames::MESSAGE_BYTES_MAX, state::Ai};
use base::{
    error::{Code, Error, Problem, Result},
    request_id::RequestId,
};
use edge::{caller::Caller, http::Body};
use world::sessions::world_state::WorldState;

/// Opens a WebSocket between a frontend and the server. A browser's WebSocket cannot send headers, so the credential comes in the
/// first frame: `{"type": "connect", "client_id", "token", …}`. Until then the server sends nothing.
#[utoipa::path(get, path = "/v1/campaigns/{c}/bridge",
    tag = "sessions", operation_id = "connect_bridge", security(()),
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 101, description = "The connection is a WebSocket; docs/bridge.md describes its frames"),
        (status = "default", body = Problem)))]
pub async fn bridge(
    app: web::Data<Ai>,
    request: HttpRequest,
    path: web::Path<String>,
    body: web::Payload,
) -> Result<HttpResponse> {
    let peer = app.client(&request);
    let place = app.frontends.hub.admit(peer)?;
    let (response, session, stream) = actix_ws::handle(&request, body).map_err(|e| {
        Error::new(Code::BadRequest, format!("This address is a WebSocket; connect with a WebSocket client ({e})."))
    })?;
    let upgrade = Upgrade {
        campaign: path.into_inner(),
        origin: foreign_origin(&request),
        request: RequestId::of(&request),
        peer,
    };
    let stream =
        stream.max_frame_size(MESSAGE_BYTES_MAX).aggregate_continuations().max_continuation_size(MESSAGE_BYTES_MAX);
    actix_web::rt::spawn(socket::run(app.into_inner(), place, upgrade, session, stream));
    Ok(response)
}

/// The origin of the connecting page, unless it is one of our own pages.
fn foreign_origin(request: &HttpRequest) -> Option<String> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text(header::ORIGIN)?;
    let is_ours = origin.split_once("://").is_some_and(|(_, place)| Some(place) == text(header::HOST));
    (!is_ours).then(|| origin.to_owned())
}

/// Stores events that happened at the frontend's table. Each counts as a request in the tenant's limits.
#[utoipa::path(post, path = "/v1/campaigns/{c}/sessions/{x}/events",
    tag = "sessions", operation_id = "report_session_events", request_body = EventsInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = EventsTaken), (status = "default", body = Problem)))]
pub async fn post_events(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<EventsInput>,
) -> Result<impl Responder> {
    let at = SessionPath { campaign: &path.0, session: path.1 };
    reports::take_events(&app, &caller, &request, at, &body.value, body.idempotency.as_ref()).await
}

/// Replaces the world as the frontend has it. The next delta reports what moved since the previous state.
#[utoipa::path(put, path = "/v1/campaigns/{c}/sessions/{x}/world-state",
    tag = "sessions", operation_id = "replace_world_state", request_body = WorldState,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = WorldState), (status = "default", body = Problem)))]
pub async fn put_world_state(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<Value>,
) -> Result<impl Responder> {
    let at = SessionPath { campaign: &path.0, session: path.1 };
    let Body { value, idempotency } = body;
    reports::replace_world(&app, &caller, at, value, idempotency.as_ref()).await
}
