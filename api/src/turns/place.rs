//! A turn's place: one turn at a time has an entity and a player, or a session. Others are refused, or wait.
//!
//! A turn that somebody hears, or comes back for, has a row while it waits (`queued`), so that its client need not wait as well. The
//! order of those who wait is kept within a process; across processes they ask again and again.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{
    OnBusy, Status, gm,
    start::Asker,
    store::{self, Failure, Place},
};
use crate::{
    admission,
    app::App,
    auth::Caller,
    error::{Code, Error, Result},
    http::Reply,
    llm::Usage,
    ops::metrics,
    pool::{Need, with_need},
};

/// How long a turn waits for the one before it.
const WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(25);
const ENTITY_BUSY: &str = "This entity is already answering this player.";
const SESSION_BUSY: &str = "This session is already having a turn.";

/// What came of an attempt to take a place.
pub enum Attempted {
    /// The turn ran to its end, or had run before.
    Done(Reply),
    /// It waits under this id, as it was to.
    Waits(Uuid),
}

/// Whose place it is, as the request names it.
pub struct Wanted {
    pub kind: &'static str,
    pub place: (Uuid, Uuid),
    pub on_busy: OnBusy,
    /// Whether it may be a request that was made before.
    pub has_key: bool,
}

/// Runs a turn as soon as its place is free, or not at all, as `on_busy` says.
///
/// # Errors
/// `turn_in_progress`; those of `attempt`.
pub async fn in_place(
    app: &App,
    caller: &Caller,
    wanted: Wanted,
    asker: &Asker,
    attempt: impl AsyncFn(Place) -> Result<Attempted>,
) -> Result<Reply> {
    match wanted.on_busy {
        OnBusy::Reject => {
            let occupied = app.running.occupy(wanted.place);
            // Of a repeated request the database knows more than that the place is taken.
            if occupied.is_none() && !wanted.has_key {
                let what = if wanted.kind == gm::KIND { SESSION_BUSY } else { ENTITY_BUSY };
                return Err(Error::new(Code::TurnInProgress, what));
            }
            taken(app, caller.tenant_id(), Place::Free, &attempt).await
        }
        OnBusy::Queue => Waiting { app, caller, asker, wanted }.run(&attempt).await,
    }
}

/// Tries once, and once more if what stood in the way was a turn whose server is gone, and which is taken back in a step.
async fn taken(
    app: &App,
    tenant: Uuid,
    place: Place,
    attempt: &impl AsyncFn(Place) -> Result<Attempted>,
) -> Result<Reply> {
    let attempted = match attempt(place).await {
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if !store::freed(&app.pool, app.running.instance, tenant, &e).await {
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

/// A turn that waits if it has to.
struct Waiting<'a> {
    app: &'a App,
    caller: &'a Caller,
    asker: &'a Asker,
    wanted: Wanted,
}

impl Waiting<'_> {
    async fn run(&self, attempt: &impl AsyncFn(Place) -> Result<Attempted>) -> Result<Reply> {
        let since = Instant::now();
        let queue = self.app.running.queue(self.wanted.place.0, self.wanted.place.1);
        let first = queue.try_lock().ok();
        if first.is_some() {
            match taken(self.app, self.caller.tenant_id(), Place::Free, attempt).await {
                Err(e) if e.code == Code::TurnInProgress => {}
                result => return result,
            }
        }
        // Whoever waits for the whole answer needs no row meanwhile.
        let row = match &self.asker.live {
            Some(_) => match attempt(Place::Queue).await? {
                Attempted::Done(reply) => return Ok(reply),
                Attempted::Waits(turn) => Some((turn, self.app.running.wait(turn, self.asker))),
            },
            None => None,
        };
        let turn = row.as_ref().map(|(turn, _)| *turn);
        if first.is_none() {
            // Whoever waits for another turn does no work meanwhile.
            admission::step_out();
        }
        let first = match first {
            Some(first) => Ok(first),
            None => tokio::select! {
                () = self.asker.cancel.cancelled() => Err(cancelled()),
                first = timeout(WAIT, queue.lock()) => {
                    first.map_err(|_| Error::new(Code::TurnInProgress, "The turns before this one did not end in time."))
                }
            },
        };
        let result = match first {
            Ok(_first) => self.in_turn(turn.map_or(Place::Free, Place::Queued), since, attempt).await,
            Err(error) => Err(error),
        };
        if let (Some(turn), Err(error)) = (turn, &result) {
            self.gave_up(turn, error).await;
        }
        result
    }

    /// Runs as soon as nobody else does.
    async fn in_turn(
        &self,
        place: Place,
        since: Instant,
        attempt: &impl AsyncFn(Place) -> Result<Attempted>,
    ) -> Result<Reply> {
        loop {
            match taken(self.app, self.caller.tenant_id(), place, attempt).await {
                Err(e) if e.code == Code::TurnInProgress && since.elapsed() < WAIT => {
                    tokio::select! {
                        () = sleep(POLL) => {}
                        () = self.asker.cancel.cancelled() => return Err(cancelled()),
                    }
                }
                result => return result,
            }
        }
    }

    /// Ends a turn that waited for nothing. One that ran has ended already.
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
            model: "",
            usage: &Usage::default(),
            cost_micros: None,
        };
        let actor = self.caller.actor();
        let failed = store::fail(pool, &actor, turn, self.app.running.instance, &failure);
        match with_need(Need::End, failed).await {
            Ok(false) => {}
            Ok(true) => metrics::TURNS.with_label_values(&[self.wanted.kind, status.as_str()]).inc(),
            Err(error) => {
                tracing::error!(turn_id = %turn, %error, "a turn that waited could not be closed; the sweeper will")
            }
        }
    }
}

fn cancelled() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled while it waited.")
}
