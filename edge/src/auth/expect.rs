//! `Expect: 100-continue`: a client that asks before it sends a large body gets the final answer at once if its request will be refused
//! whatever the body is.
//!
//! What passes here is checked again by [`super::gate`], which also counts it. The path's ids and the body's content are not looked at.

use actix_http::{HttpMessage, Request, Response};
use actix_web::{body::BoxBody, dev::Url};
use tokio::time::Instant;

use super::gate::{allowed, authenticate};
use crate::{
    caller::access,
    http::{
        body::{announced, too_large},
        door,
        observe::{count, note},
        router::without_route,
    },
    state::Edge,
};
use base::{error::Error, request_id::RequestId};

/// Lets the client send its body, or answers instead.
///
/// # Errors
/// The answer.
pub async fn expect(app: &Edge, request: Request) -> Result<Request, Response<BoxBody>> {
    let started = Instant::now();
    let id = door::id_of(&request);
    let Err(error) = refused(app, &request, &id).await else { return Ok(request) };
    let answer = door::refusal(app, &request, &id, &error);
    let ms = count(request.method(), "refused", answer.status(), started).1 * 1000.0;
    note(&id, request.method().as_str(), "refused", answer.status(), ms, None);
    Err(answer)
}

async fn refused(app: &Edge, request: &Request, id: &RequestId) -> Result<(), Error> {
    door::take_place(app, request)?;
    let path = Url::new(request.uri().clone());
    if !path.path().starts_with("/v1/") {
        return Ok(());
    }
    let Some(wanted) = access::fitting(request.method().as_str(), path.path()) else {
        return without_route(request.method(), &access::methods(path.path())).map(|_| ());
    };
    let client = app.proxies.client(request.peer_addr(), request.headers());
    if !wanted.in_first_frame {
        let caller =
            authenticate(app, request.headers(), client, id.clone()).await.map_err(|stranger| stranger.error)?;
        allowed(&caller, wanted)?;
    }
    match announced(request.headers()) {
        Some(bytes) if bytes > wanted.body_bytes_max => Err(too_large(wanted.body_bytes_max)),
        _ => Ok(()),
    }
}
