//! Starts a turn for a client that waits for the whole answer, follows the turn while it runs, or comes back later.

use std::{future::Future, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, HeaderValue},
    rt::task::JoinHandle,
    web,
};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::{
    events::{Listener, answer},
    live::{Live, Position},
    running::Asker,
    view::Status,
    words::Words,
};
use crate::state::Ai;
use base::error::{Code, Error, Result};
use edge::{
    admission,
    caller::Caller,
    http::{Reply, answered, idempotency::IdempotencyKey},
    limits::{Counted, Permit},
    panics::{self, Panicked},
};

/// How a client wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Whole,
    /// As server-sent events.
    Streamed,
    /// An answer as soon as the turn runs (RFC 7240, `respond-async`).
    Later,
}

impl Wish {
    /// What the request asks for. A stream takes precedence over `Prefer: respond-async`.
    #[must_use]
    pub fn of(request: &HttpRequest, stream: bool) -> Self {
        let prefers = request.headers().get_all("prefer").filter_map(|value| value.to_str().ok());
        let later = prefers.flat_map(|value| value.split(',')).any(|preference| {
            preference.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("respond-async"))
        });
        match (stream, later) {
            (true, _) => Wish::Streamed,
            (false, true) => Wish::Later,
            (false, false) => Wish::Whole,
        }
    }
}

/// A turn whose client does not wait for it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct TurnStarted {
    pub turn_id: Uuid,
    /// `running`, or `queued` while another turn has its place. For a repeated request: how the turn ended.
    pub status: Status,
}

/// A started turn.
pub struct Started {
    pub asker: Asker,
    task: JoinHandle<Result<Reply>>,
}

/// Starts a turn in a task of its own, within the tenant's limits.
///
/// # Errors
/// `rate_limited`, `unavailable`.
pub fn start<F>(
    app: &web::Data<Ai>,
    caller: &Caller,
    is_heard: bool,
    run: impl FnOnce(web::Data<Ai>, Caller, Asker) -> F,
) -> Result<Started>
where
    F: Future<Output = Result<Reply>> + 'static,
{
    let (places, counted) = admitted(app, caller)?;
    let live = is_heard.then(Live::new);
    let asker = Asker { live, counted: Some(Arc::new(counted)), ..Asker::default() };
    let task = in_task(places, run(app.clone(), caller.clone(), asker.clone()));
    Ok(Started { asker, task })
}

/// Runs work that calls a model in a task of its own, within the tenant's limits. It counts as a turn, and goes on after the client
/// has left.
///
/// # Errors
/// `rate_limited`, `unavailable`.
pub fn spawn<T: 'static>(
    app: &Ai,
    caller: &Caller,
    work: impl Future<Output = Result<T>> + 'static,
) -> Result<JoinHandle<Result<T>>> {
    let (places, counted) = admitted(app, caller)?;
    counted.keep();
    Ok(in_task(places, work))
}

/// What a turn holds while it runs: a place within the tenant's limit and one within the server's.
type Places = (Permit, OwnedSemaphorePermit);

/// Checks that the tenant may have one more turn at the same time and in this minute, and the server too.
fn admitted(app: &Ai, caller: &Caller) -> Result<(Places, Counted)> {
    let places = caller.tenant.limits.concurrent_turns;
    let permit = app.limits.turns.take(caller.tenant_id(), places, "concurrent-turns")?;
    let place = app.admission.turn()?;
    Ok(((permit, place), app.limits.take_turn(&caller.tenant)?))
}

fn in_task<T: 'static>(places: Places, work: impl Future<Output = Result<T>> + 'static) -> JoinHandle<Result<T>> {
    let work = admission::in_its_place(work);
    actix_web::rt::spawn(async move {
        let _places = places;
        match panics::caught("a turn", work).await {
            Ok(done) => done,
            Err(Panicked) => Err(Error::internal("a turn panicked")),
        }
    })
}

impl Started {
    /// The turn's answer, once it has ended.
    ///
    /// # Errors
    /// The turn's errors.
    pub async fn ended(self) -> Result<Reply> {
        self.task.await.map_err(Error::internal)?
    }

    /// The turn's id as soon as it runs or waits. If it never ran: a stored answer or an error.
    ///
    /// # Errors
    /// Why the turn did not begin.
    pub async fn begun(self) -> Result<std::result::Result<Uuid, Reply>> {
        let Some(live) = self.asker.live else { return self.task.await.map_err(Error::internal)?.map(Err) };
        let mut task = self.task;
        tokio::select! {
            biased;
            turn = live.begun() => Ok(Ok(turn)),
            result = &mut task => match (live.turn(), result.map_err(Error::internal)?) {
                (Some(turn), _) => Ok(Ok(turn)),
                (None, result) => result.map(Err),
            },
        }
    }
}

/// Runs a turn and answers as the client asked. If the turn has no idempotency key and is neither streamed nor answered later,
/// nobody could ask for it again, so it is cancelled when its client leaves. If a limit rejects the request, it may still have a
/// stored answer.
///
/// # Errors
/// The turn's errors before its answer begins.
pub async fn respond<F>(
    app: web::Data<Ai>,
    caller: Caller,
    campaign: &str,
    wish: Wish,
    key: Option<IdempotencyKey>,
    run: impl FnOnce(web::Data<Ai>, Caller, Asker) -> F,
) -> Result<HttpResponse>
where
    F: Future<Output = Result<Reply>> + 'static,
{
    let (live, begun) = match start(&app, &caller, wish != Wish::Whole, run) {
        Ok(started) => {
            let live = started.asker.live.clone();
            let waits = (wish == Wish::Whole && key.is_none()).then(|| started.asker.waits(caller.sees_secrets()));
            let begun = started.begun().await;
            if let Some(waits) = waits {
                waits.has_answer();
            }
            (live, begun)
        }
        // The server's own limit also rejects repeated requests, because it must not ask the database.
        Err(busy) if busy.code == Code::Unavailable => return Err(busy),
        Err(refused) => {
            let stored = answered(&app, &caller, key.as_ref()).await;
            (None, stored.and_then(|stored| stored.map(Err).ok_or(refused)))
        }
    };
    let (turn, status, replayed) = match begun {
        Ok(Err(reply)) if wish == Wish::Whole => return Ok(for_reader(reply, &caller)?.into()),
        Ok(Err(reply)) => {
            let (turn, status) = turn_of(&reply)?;
            (turn, status, reply.replayed)
        }
        Ok(Ok(turn)) if live.is_some_and(|live| live.waits()) => (turn, Status::Queued, false),
        Ok(Ok(turn)) => (turn, Status::Running, false),
        // A client that lost the first answer and asks again gets the turn of that answer.
        Err(error) => match error.turn_id {
            Some(turn) if wish != Wish::Whole && error.code == Code::IdempotencyInFlight => {
                (turn, Status::Running, true)
            }
            _ => return Err(error),
        },
    };
    let location = format!("/v1/campaigns/{campaign}/turns/{turn}");
    let mut response = match wish {
        Wish::Later => {
            let reply = Reply::accepted(&TurnStarted { turn_id: turn, status })?;
            let mut response = HttpResponse::from(Reply { location: Some(location), replayed, ..reply });
            put(&mut response, "preference-applied", "respond-async");
            return Ok(response);
        }
        _ => answer(Listener::new(app, &caller, turn, Position::default())?),
    };
    if replayed {
        put(&mut response, "idempotency-replayed", "true");
    }
    Ok(response)
}

/// A turn's answer as its client may read it. The key stores the whole answer, so repeated answers are filtered here too.
fn for_reader(mut reply: Reply, caller: &Caller) -> Result<Reply> {
    if caller.sees_secrets() {
        return Ok(reply);
    }
    let mut view: serde_json::Value = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
    Words::of_answer(caller, &view).narrow(&mut view);
    reply.body = serde_json::to_vec(&view).map_err(Error::internal)?;
    Ok(reply)
}

fn put(response: &mut HttpResponse, name: &'static str, value: &'static str) {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
}

/// The turn of a stored answer, and how it ended.
fn turn_of(reply: &Reply) -> Result<(Uuid, Status)> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(alias = "turn_id")]
        id: Uuid,
        /// The answer of the rules has no status: it succeeded.
        #[serde(default = "succeeded")]
        status: Status,
    }
    fn succeeded() -> Status {
        Status::Succeeded
    }
    let answer: Answer = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
    Ok((answer.id, answer.status))
}
