//! `GET /v1/campaigns/{c}/bridge`: the upgrade to a WebSocket.

use actix_web::{HttpRequest, HttpResponse, get, http::header, web};

use super::{connect::Upgrade, frames::MESSAGE_BYTES_MAX, socket};
use crate::{
    app::App,
    error::{Code, Error, Problem, Result},
    http::RequestId,
};

/// A frontend's own connection, as a WebSocket. A browser's cannot send a header, so the credential comes in the first frame:
/// `{"type": "connect", "client_id", "token", …}`; until it has come, nothing is known and nothing is sent.
#[utoipa::path(tag = "sessions", operation_id = "connect_bridge", security(()),
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 101, description = "The connection is a WebSocket; docs/bridge.md describes its frames"),
        (status = "default", body = Problem)))]
#[get("/campaigns/{c}/bridge")]
pub async fn bridge(
    app: web::Data<App>,
    request: HttpRequest,
    path: web::Path<String>,
    body: web::Payload,
) -> Result<HttpResponse> {
    let peer = app.client(&request);
    let place = app.bridge.admit(peer)?;
    let (response, session, stream) = actix_ws::handle(&request, body)
        .map_err(|e| Error::new(Code::BadRequest, format!("This is a WebSocket: open it as one ({e}).")))?;
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

/// The origin of the page that connects, unless it is one of our own pages.
fn foreign_origin(request: &HttpRequest) -> Option<String> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text(header::ORIGIN)?;
    let is_ours = origin.split_once("://").is_some_and(|(_, place)| Some(place) == text(header::HOST));
    (!is_ours).then(|| origin.to_owned())
}
