//! A turn's place. Only one turn at a time may run for an entity and a player, or for a session. Others are rejected or wait.
//!
//! If somebody listens to a waiting turn, or will come back for it, it has a row (`queued`), so that its client does not have to
//! wait too. Within a process, waiting turns keep their order, by the ids for the names in their requests. The first of them tries
//! again when the turn that has the place ends. If that turn runs on another server, [`elsewhere`](super::elsewhere) says when.
//! Never retry in a loop: each attempt is a transaction with everything that begins a turn.

use std::time::Duration;

use tokio::{
    sync::{OwnedMutexGuard, watch},
    time::{Instant, sleep_until, timeout_at},
};
use uuid::Uuid;

use super::{
    cx::Cx,
    kind::TurnKind,
    running::{Asker, Occupied, Queue, Spot, Waits},
    store::{self, ENTITY_BUSY, Failure, Place, SESSION_BUSY},
    view::Status,
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::pool::{Need, with_need};
use edge::admission;

/// How long a turn waits for the one before it.
const WAIT: Duration = Duration::from_secs(60);
/// The shortest time between two attempts, however often the place is reported free.
const PAUSE: Duration = Duration::from_millis(25);

/// A permit says how a turn opens, and waits while its place is taken. The turn keeps it until it ends.
pub(crate) struct Permit<'a> {
    cx: &'a Cx<'a>,
    kind: TurnKind,
    place: Place,
    /// Whether this permit has tried to free the place from an orphaned turn since it last waited.
    has_freed: bool,
    occupied: Option<Occupied<'a>>,
    line: Option<Line<'a>>,
}

/// A turn's position among those that wait for a place.
struct Line<'a> {
    until: Instant,
    /// When the turn came, or last stopped waiting.
    since: Instant,
    /// Those before it. None once it is the first.
    behind: Option<Queue>,
    first: Option<OwnedMutexGuard<()>>,
    /// Watches the place from the beginning: a turn that ends during an attempt no longer blocks the place afterwards.
    news: watch::Receiver<()>,
    /// The turn's row, if it has one.
    row: Option<(Uuid, Waits<'a>)>,
}

impl<'a> Permit<'a> {
    /// The permit of a turn that opens now or not at all. The database decides.
    pub fn at_once(cx: &'a Cx<'a>, kind: TurnKind, place: Place) -> Self {
        Self { cx, kind, place, has_freed: false, occupied: None, line: None }
    }

    /// The same, but rejects a turn whose place is known to be taken on this server. `may_replay` tells whether the same request may
    /// have been made before: then the database may have an answer.
    ///
    /// # Errors
    /// `turn_in_progress`.
    pub fn unless_busy(cx: &'a Cx<'a>, kind: TurnKind, spot: Option<Spot>, may_replay: bool) -> Result<Self> {
        let occupied = spot.map(|spot| cx.app.running.occupy(spot));
        if matches!(occupied, Some(None)) && !may_replay {
            let what = if spot.is_some_and(Spot::is_session) { SESSION_BUSY } else { ENTITY_BUSY };
            return Err(Error::new(Code::TurnInProgress, what));
        }
        Ok(Self { occupied: occupied.flatten(), ..Self::at_once(cx, kind, Place::Free) })
    }

    /// The permit of a turn that waits for its place behind those that wait already.
    ///
    /// # Errors
    /// `turn_in_progress` if the turns before it do not end in time, `conflict` if the turn is cancelled meanwhile.
    pub async fn in_line(cx: &'a Cx<'a>, kind: TurnKind, spot: Spot) -> Result<Self> {
        let (queue, news) = (cx.app.running.queue(spot), cx.app.running.place(spot));
        let now = Instant::now();
        let first = queue.clone().try_lock_owned().ok();
        let is_first = first.is_some();
        let behind = (!is_first).then_some(queue);
        let line = Line { until: now + WAIT, since: now, behind, first, news, row: None };
        let mut permit = Self { line: Some(line), ..Self::at_once(cx, kind, Place::Free) };
        if !is_first {
            permit.take_a_row_or_wait().await?;
        }
        Ok(permit)
    }

    /// The turn is registered, with its place.
    pub fn runs(&mut self) {
        self.occupied = None;
    }

    /// How to open the turn now.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Takes the error of an attempt to open the turn. Returns when it is worth trying again.
    ///
    /// # Errors
    /// `error`, if it is not; as for [`Self::in_line`].
    pub async fn again(&mut self, error: Error) -> Result<()> {
        let next = self.after(error).await;
        self.or_close(next).await
    }

    /// The turn has a row now, under this id. Returns when it is worth trying again.
    ///
    /// # Errors
    /// As for [`Self::in_line`].
    pub async fn has_row(&mut self, turn: Uuid) -> Result<()> {
        let Cx { app, caller, asker, .. } = self.cx;
        let line = self.line.as_mut().ok_or_else(|| Error::internal("a turn waits that was to run"))?;
        line.row = Some((turn, app.running.wait(turn, asker, caller.tenant_id())));
        self.place = Place::Queued(turn);
        let next = self.wait().await;
        self.or_close(next).await
    }

    async fn after(&mut self, error: Error) -> Result<()> {
        let Cx { app, caller, .. } = self.cx;
        // The place may be held by an orphaned turn that can be reverted in one step.
        let is_taken = matches!(error.code, Code::TurnInProgress | Code::IdempotencyInFlight);
        if is_taken && !self.has_freed {
            self.has_freed = true;
            if store::freed(&app.pool, &app.running, caller.tenant_id(), &error).await {
                return Ok(());
            }
        }
        let may_wait = self.line.as_ref().is_some_and(|line| Instant::now() < line.until);
        if error.code != Code::TurnInProgress || !may_wait {
            return Err(error);
        }
        self.take_a_row_or_wait().await
    }

    /// If somebody listens, the turn gets a row before it waits. A client that waits for the whole answer needs none.
    async fn take_a_row_or_wait(&mut self) -> Result<()> {
        if self.place == Place::Free && self.cx.asker.live.is_some() {
            self.place = Place::Queue;
            return Ok(());
        }
        self.wait().await
    }

    async fn wait(&mut self) -> Result<()> {
        self.has_freed = false;
        match &mut self.line {
            Some(line) => line.advance(self.cx.asker).await,
            None => Ok(()),
        }
    }

    /// If the turn waited in vain, ends its row.
    async fn or_close(&mut self, next: Result<()>) -> Result<()> {
        if let (Err(error), Some(line)) = (&next, &mut self.line) {
            // The next in line need not wait for this.
            (line.behind, line.first) = (None, None);
            if let Some((turn, _)) = line.row {
                self.close(turn, error).await;
            }
        }
        next
    }

    async fn close(&self, turn: Uuid, error: &Error) {
        let Cx { app, caller, asker, .. } = self.cx;
        let is_cancelled = asker.cancel.is_cancelled()
            || store::cancel_requested(&app.pool, caller.tenant_id(), turn).await.unwrap_or(false);
        let status = if is_cancelled { Status::Cancelled } else { Status::Failed };
        let failure = Failure {
            status,
            code: if is_cancelled { "cancelled" } else { error.code.as_str() },
            message: &error.detail,
            record: None,
            calls: &[],
        };
        let actor = caller.actor();
        match with_need(Need::End, store::fail(&app.pool, &actor, turn, app.running.instance, &failure)).await {
            Ok(false) => {}
            Ok(true) => metrics::TURNS.with_label_values(&[self.kind.as_str(), status.as_str()]).inc(),
            Err(error) => {
                tracing::error!(turn_id = %turn, %error, "could not close a turn that waited; the sweeper will");
            }
        }
    }
}

impl Line<'_> {
    /// Waits until the turn may try again. The first in line waits for news of the place. The others try as soon as the one before them
    /// is done.
    async fn advance(&mut self, asker: &Asker) -> Result<()> {
        // A request that waits for another turn does no work meanwhile.
        admission::step_out();
        match self.behind.take() {
            Some(queue) => self.first = Some(patiently(asker, self.until, queue.lock_owned()).await?),
            None => {
                patiently(asker, self.until, self.news.changed()).await?.map_err(Error::internal)?;
                patiently(asker, self.until, sleep_until(self.since + PAUSE)).await?;
            }
        }
        self.news.mark_unchanged();
        self.since = Instant::now();
        Ok(())
    }
}

/// Waits for something, at most as long as a turn may wait, unless the turn is cancelled.
async fn patiently<T>(asker: &Asker, until: Instant, awaited: impl Future<Output = T>) -> Result<T> {
    tokio::select! {
        () = asker.cancel.cancelled() => Err(Error::new(Code::Conflict, "The turn was cancelled while it waited.")),
        done = timeout_at(until, awaited) => {
            done.map_err(|_| Error::new(Code::TurnInProgress, "The turns before this one did not end in time."))
        }
    }
}
