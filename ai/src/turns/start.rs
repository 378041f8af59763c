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
use tracing::Instrument;
use uuid::Uuid;

use super::{
    events::{Listener, answer},
    live::{Live, Position},
    running::Asker,
    view::{Status, TurnView},
    words::Words,
};
use crate::state::Ai;
use base::error::{Code, Error, Result};
use edge::{
    admission,
    caller::Caller,
    http::{Answer, Written, answered, idempotency::IdempotencyKey},
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

/// What a turn answers.
pub(crate) trait TurnAnswer: Serialize + Sized {
    /// The turn, if there is one, and how it ended.
    fn ended(&self) -> Option<TurnEnded>;

    /// What the caller may read of it. All of it, unless the type says otherwise: answers about what a player did say only what players may
    /// know.
    ///
    /// # Errors
    /// `internal` if a stored answer cannot be read.
    fn seen_by(answer: Written<Self>, _: &Caller) -> Result<Written<Self>> {
        Ok(answer)
    }
}

/// A turn that has ended, as every answer names it, also a stored one.
#[derive(Deserialize)]
pub(crate) struct TurnEnded {
    #[serde(alias = "turn_id")]
    pub id: Uuid,
    /// The answer of the rules has no status: it succeeded.
    #[serde(default = "succeeded")]
    pub status: Status,
}

fn succeeded() -> Status {
    Status::Succeeded
}

impl TurnEnded {
    /// A turn whose answer has no status, because it succeeded.
    #[must_use]
    pub fn succeeded(id: Uuid) -> Self {
        Self { id, status: succeeded() }
    }
}

impl TurnAnswer for TurnView {
    fn ended(&self) -> Option<TurnEnded> {
        Some(TurnEnded { id: self.id, status: self.status })
    }

    /// The key stores the whole answer, so a stored one is narrowed too.
    fn seen_by(answer: Written<Self>, caller: &Caller) -> Result<Written<Self>> {
        if caller.sees_secrets() {
            return Ok(answer);
        }
        answer.shown(|mut view| {
            Words::of_answer(caller, &view).narrow(&mut view);
            view
        })
    }
}

/// A started turn.
pub struct Started<V> {
    pub asker: Asker,
    task: JoinHandle<Result<Written<V>>>,
}

/// Starts a turn in a task of its own, within the tenant's limits.
///
/// # Errors
/// `rate_limited`, `unavailable`.
pub fn start<V: 'static, F>(
    app: &web::Data<Ai>,
    caller: &Caller,
    is_heard: bool,
    run: impl FnOnce(web::Data<Ai>, Caller, Asker) -> F,
) -> Result<Started<V>>
where
    F: Future<Output = Result<Written<V>>> + 'static,
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
    let work = admission::in_its_place(work).in_current_span();
    actix_web::rt::spawn(async move {
        let _places = places;
        match panics::caught("a turn", work).await {
            Ok(done) => done,
            Err(Panicked) => Err(Error::internal("a turn panicked")),
        }
    })
}

impl<V> Started<V> {
    /// The turn's answer, once it has ended.
    ///
    /// # Errors
    /// The turn's errors.
    pub async fn ended(self) -> Result<Written<V>> {
        self.task.await.map_err(Error::internal)?
    }

    /// The id of a turn that is heard and has no idempotency key, as soon as it runs or waits.
    ///
    /// # Errors
    /// Why the turn did not begin.
    pub async fn turn(self) -> Result<Uuid> {
        self.begun().await?.map_err(|_| Error::internal("a turn without a key was answered before it began"))
    }

    /// The turn's id as soon as it runs or waits. If it never ran: a stored answer or an error.
    ///
    /// # Errors
    /// Why the turn did not begin.
    pub async fn begun(self) -> Result<std::result::Result<Uuid, Written<V>>> {
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
pub(crate) async fn respond<V: TurnAnswer + 'static, F>(
    app: web::Data<Ai>,
    caller: Caller,
    campaign: &str,
    wish: Wish,
    key: Option<IdempotencyKey>,
    run: impl FnOnce(web::Data<Ai>, Caller, Asker) -> F,
) -> Result<HttpResponse>
where
    F: Future<Output = Result<Written<V>>> + 'static,
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
            (None, stored.and_then(|stored| stored.map(|stored| Err(Written::Before(stored))).ok_or(refused)))
        }
    };
    let (turn, status, replayed) = match begun {
        Ok(Err(answer)) if wish == Wish::Whole => return Ok(V::seen_by(answer, &caller)?.into()),
        Ok(Err(answer)) => {
            let is_replayed = answer.is_replayed();
            let ended: Option<TurnEnded> = answer.part(|answer| answer.ended())?;
            let TurnEnded { id, status } = ended.ok_or_else(|| Error::internal("an answer without a turn"))?;
            (id, status, is_replayed)
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
            let started = Answer::accepted(TurnStarted { turn_id: turn, status }).at(location);
            let mut response = HttpResponse::from(started.replayed(replayed));
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

fn put(response: &mut HttpResponse, name: &'static str, value: &'static str) {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
}
