//! `Expect: 100-continue`: a client that asks before it sends a large body gets the final answer at once if its request will be refused
//! whatever the body is.
//!
//! What passes here is checked again by [`super::gate`], which also counts it. The path's ids and the body's content are not looked at.

use std::rc::Rc;

use actix_http::{HttpMessage, Request, Response};
use actix_web::{body::BoxBody, dev::Url, http::StatusCode};
use tokio::time::Instant;

use super::gate::{allowed, authenticate};
use crate::{
    caller::{Caller, access},
    connections::Line,
    http::{
        body::{announced, too_large},
        door::{self, Refusal},
        observe::{count, note},
        router::{routed, without_route},
    },
    limits::Class,
    state::Edge,
};
use base::{error::Error, metrics, request_id::RequestId};

/// Lets the client send its body, or answers instead.
///
/// # Errors
/// The answer.
pub async fn expect(app: &Edge, request: Request) -> Result<Request, Response<BoxBody>> {
    // The client waits for us, so nothing is owed.
    let _work = request.conn_data::<Rc<Line>>().map(Line::work);
    let started = Instant::now();
    let id = door::id_of(&request);
    let mut route = "refused";
    let Err(refusal) = checked(app, &request, &id, &mut route).await else { return Ok(request) };
    let answer = refusal.answer(app, &request, &id);
    let (method, seconds) = count(request.method(), route, answer.status(), started);
    match answer.status() {
        StatusCode::SERVICE_UNAVAILABLE => {}
        StatusCode::TOO_MANY_REQUESTS => metrics::RATE_LIMITED.inc(),
        status => {
            let by = refusal.caller.map(|caller| caller.actor().signature());
            note(&id, method, route, status, seconds * 1000.0, by);
        }
    }
    Err(answer)
}

/// Checks what is known from the head of a request. `route` becomes the pattern that fits.
async fn checked(app: &Edge, request: &Request, id: &RequestId, route: &mut &str) -> Result<(), Refusal> {
    door::take_place(app, request)?;
    let path = Url::new(request.uri().clone());
    let (method, path) = (routed(request.method()), path.path());
    if !path.starts_with("/v1/") {
        return Ok(());
    }
    let Some(wanted) = access::fitting(method.as_str(), path) else {
        without_route(method, &access::methods(path))?;
        return Ok(());
    };
    *route = wanted.path;
    let mut caller = None;
    if !wanted.in_first_frame {
        let client = app.proxies.client(request.peer_addr(), request.headers());
        let known = authenticate(app, request.headers(), client, id.clone()).await;
        let known = known.map_err(|stranger| Refusal { error: stranger.error, rate: stranger.rate, caller: None })?;
        allowed(&known, wanted).map_err(|error| counted(app, &known, error))?;
        caller = Some(known);
    }
    match (announced(request.headers()), caller) {
        (Some(bytes), Some(caller)) if bytes > wanted.body_bytes_max => {
            Err(counted(app, &caller, too_large(wanted.body_bytes_max)))
        }
        _ => Ok(()),
    }
}

/// A refusal of a known caller counts as a request.
fn counted(app: &Edge, caller: &Caller, error: Error) -> Refusal {
    let rate = app.limits.check(&caller.tenant, Class::Requests);
    let error = rate.allowed("requests").err().unwrap_or(error);
    Refusal { error, rate: Some(rate), caller: Some(caller.clone()) }
}
