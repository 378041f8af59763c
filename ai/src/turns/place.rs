//! A turn's place. Only one turn at a time may run for an entity and a player, or for a session. Others are rejected or wait.
//!
//! If somebody listens to a waiting turn, or will come back for it, it has a row (`queued`), so that its client does not have to
//! wait too. Within a process, waiting turns keep their order, by the ids for the names in their requests. The first of them tries
//! again when the turn that has the place ends. If that turn runs on another server, [`elsewhere`](super::elsewhere) says when.
//! Never retry in a loop: each attempt is a transaction with everything that begins a turn.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};
use uuid::Uuid;

use super::{
    gm,
    job::OnBusy,
    running::{Asker, Spot},
    store::{self, Failure, Place},
    view::Status,
};
use crate::state::Ai;
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::pool::{Need, with_need};
use edge::{admission, caller::Caller, http::Reply};

/// How long a turn waits for the one before it.
const WAIT: Duration = Duration::from_secs(60);
/// The shortest time between two attempts, however often the place is reported free.
const PAUSE: Duration = Duration::from_millis(25);
const ENTITY_BUSY: &str = "This entity is already answering this player.";
const SESSION_BUSY: &str = "This session is already having a turn.";

/// The result of an attempt to take a place.
pub enum Attempted {
    /// The turn ran to its end, or had run before.
    Done(Reply),
    /// The turn waits under this id, as requested.
    Waits(Uuid),
}

/// The kind of turn, and whether it should wait.
pub struct PlaceRequest {
    pub kind: &'static str,
    /// The turn's place, if it is known without a statement.
    pub known: Option<Spot>,
    pub on_busy: OnBusy,
    /// Whether the same request may have been made before.
    pub has_key: bool,
}

/// Runs a turn as soon as its place is free. With `OnBusy::Reject` it runs at once or not at all. `spot` finds the place of a turn
/// that waits.
///
/// # Errors
/// `turn_in_progress`; the errors of `attempt` and `spot`.
pub async fn in_place(
    app: &Ai,
    caller: &Caller,
    wanted: PlaceRequest,
    asker: &Asker,
    spot: impl AsyncFn() -> Result<Spot>,
    attempt: impl AsyncFn(Place) -> Result<Attempted>,
) -> Result<Reply> {
    match wanted.on_busy {
        OnBusy::Reject => {
            let occupied = wanted.known.map(|spot| app.running.occupy(spot));
            // For a repeated request, the database may have an answer.
            if matches!(occupied, Some(None)) && !wanted.has_key {
                let what = if wanted.kind == gm::KIND { SESSION_BUSY } else { ENTITY_BUSY };
                return Err(Error::new(Code::TurnInProgress, what));
            }
            attempt_with_retry(app, caller.tenant_id(), Place::Free, &attempt).await
        }
        OnBusy::Queue => {
            let waiting = Waiting { app, caller, asker, wanted, until: Instant::now() + WAIT };
            waiting.run(spot().await?, &attempt).await
        }
    }
}

/// Tries once, and once more if the place was held by an orphaned turn that could be reverted in one step.
pub(super) async fn attempt_with_retry(
    app: &Ai,
    tenant: Uuid,
    place: Place,
    attempt: &impl AsyncFn(Place) -> Result<Attempted>,
) -> Result<Reply> {
    let attempted = match attempt(place).await {
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if !store::freed(&app.pool, &app.running, tenant, &e).await {
                return Err(e);
            }
            attempt(place).await
        }
        result => result,
    };
    match attempted? {
        Attempted::Done(reply) => Ok(reply),
        Attempted::Waits(_) => Err(Error::internal("a turn waits that was to run")),
    }
}

/// A turn that waits if necessary.
struct Waiting<'a> {
    app: &'a Ai,
    caller: &'a Caller,
    asker: &'a Asker,
    wanted: PlaceRequest,
    until: Instant,
}

impl Waiting<'_> {
    async fn run(&self, spot: Spot, attempt: &impl AsyncFn(Place) -> Result<Attempted>) -> Result<Reply> {
        let queue = self.app.running.queue(spot);
        // Watch the place from now on: a turn that ends during an attempt no longer blocks the place afterwards.
        let mut news = self.app.running.place(spot);
        let first = queue.try_lock().ok();
        if first.is_some() {
            match attempt_with_retry(self.app, self.caller.tenant_id(), Place::Free, attempt).await {
                Err(e) if e.code == Code::TurnInProgress => {}
                result => return result,
            }
        }
        // A client that waits for the whole answer needs no row.
        let row = match &self.asker.live {
            Some(_) => match attempt(Place::Queue).await? {
                Attempted::Done(reply) => return Ok(reply),
                Attempted::Waits(turn) => {
                    Some((turn, self.app.running.wait(turn, self.asker, self.caller.tenant_id())))
                }
            },
            None => None,
        };
        let turn = row.as_ref().map(|(turn, _)| *turn);
        // A request that waits for another turn does no work meanwhile.
        admission::step_out();
        let begun = async {
            // The first in the queue waits for news of the place. The others try as soon as the one before them is done.
            let _first = match first {
                Some(first) => {
                    self.patiently(news.changed()).await?.map_err(Error::internal)?;
                    first
                }
                None => self.patiently(queue.lock()).await?,
            };
            self.in_turn(turn.map_or(Place::Free, Place::Queued), &mut news, attempt).await
        };
        let result = begun.await;
        if let (Some(turn), Err(error)) = (turn, &result) {
            self.gave_up(turn, error).await;
        }
        result
    }

    /// Runs as soon as the place is free.
    async fn in_turn(
        &self,
        place: Place,
        news: &mut watch::Receiver<()>,
        attempt: &impl AsyncFn(Place) -> Result<Attempted>,
    ) -> Result<Reply> {
        loop {
            news.mark_unchanged();
            let next = Instant::now() + PAUSE;
            match attempt_with_retry(self.app, self.caller.tenant_id(), place, attempt).await {
                Err(e) if e.code == Code::TurnInProgress && Instant::now() < self.until => {
                    self.patiently(news.changed()).await?.map_err(Error::internal)?;
                    self.patiently(sleep_until(next)).await?;
                }
                result => return result,
            }
        }
    }

    /// Waits for something, at most as long as a turn may wait, unless the turn is cancelled.
    async fn patiently<T>(&self, awaited: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            () = self.asker.cancel.cancelled() => Err(cancelled()),
            done = timeout_at(self.until, awaited) => {
                done.map_err(|_| Error::new(Code::TurnInProgress, "The turns before this one did not end in time."))
            }
        }
    }

    /// Ends a turn that waited in vain. A turn that ran has ended already.
    async fn gave_up(&self, turn: Uuid, error: &Error) {
        let pool = &self.app.pool;
        let cancelled = self.asker.cancel.is_cancelled()
            || store::cancel_requested(pool, self.caller.tenant_id(), turn).await.unwrap_or(false);
        let status = if cancelled { Status::Cancelled } else { Status::Failed };
        let failure = Failure {
            status,
            code: if cancelled { "cancelled" } else { error.code.as_str() },
            message: &error.detail,
            record: None,
            calls: &[],
        };
        let actor = self.caller.actor();
        let failed = store::fail(pool, &actor, turn, self.app.running.instance, &failure);
        match with_need(Need::End, failed).await {
            Ok(false) => {}
            Ok(true) => metrics::TURNS.with_label_values(&[self.wanted.kind, status.as_str()]).inc(),
            Err(error) => {
                tracing::error!(turn_id = %turn, %error, "could not close a turn that waited; the sweeper will")
            }
        }
    }
}

fn cancelled() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled while it waited.")
}
