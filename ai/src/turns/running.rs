//! The turns of this process, the means to cancel them, and who waits for what on this server.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{live::Live, steady::Steady, subject::Subject};
use base::watched::Watched;
use db::pool;
use edge::{admission, limits::Counted};

/// A place that only one turn at a time may have: an entity and a player, or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub tenant: Uuid,
    /// The session, for a session's turn.
    pub entity: Uuid,
    /// The nil id, for a session's turn.
    pub player: Uuid,
}

impl Spot {
    /// The place of a turn.
    #[must_use]
    pub fn of(tenant: Uuid, subject: &Subject) -> Self {
        Self { tenant, entity: subject.entity, player: subject.player.unwrap_or_default() }
    }

    /// Whether it is a session's place.
    #[must_use]
    pub fn is_session(self) -> bool {
        self.player.is_nil()
    }
}

/// A turn, with its tenant.
pub type Followed = (Uuid, Uuid);

/// The link between a turn and the client that asked for it, who may cancel it or follow it.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    pub cancel: CancellationToken,
    pub live: Option<Arc<Live>>,
    /// The turn's entry in the tenant's rate limit of turns.
    pub(super) counted: Option<Arc<Counted>>,
    /// Whether the turn has done something that others can see.
    pub(super) has_acted: Arc<AtomicBool>,
}

impl Asker {
    /// The turn has begun or waits for its place, so it counts for the rate limit. A rejected or repeated request does not count.
    pub fn counts(&self) {
        if let Some(counted) = &self.counted {
            counted.keep();
        }
    }

    /// The turn is about to commit something.
    pub fn acts(&self) {
        self.has_acted.store(true, Ordering::Relaxed);
    }

    /// The client waits for the answer, and the turn is cancelled if it leaves before. If the turn has done something by then, it goes on,
    /// unless a game master asked: a player who sees the outcome elsewhere must not take it back by leaving.
    pub(super) fn waits(&self, is_master: bool) -> Client {
        Client { asker: Some(self.clone()), is_master }
    }
}

/// A client that waits for a turn's answer.
pub(super) struct Client {
    asker: Option<Asker>,
    is_master: bool,
}

impl Client {
    /// The client has its answer, and may leave.
    pub(super) fn has_answer(mut self) {
        self.asker = None;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(asker) =
            self.asker.take().filter(|asker| self.is_master || !asker.has_acted.load(Ordering::Relaxed))
        {
            asker.cancel.cancel();
        }
    }
}

/// The turns of this process, the means to cancel them, and who waits for what on this server.
pub struct Running {
    /// This process's number. The process holds an advisory lock on it as long as it lives.
    pub instance: i64,
    /// Whether this process may declare other processes dead.
    pub steady: Steady,
    turns: Mutex<HashMap<Uuid, Here>>,
    queues: Mutex<HashMap<Spot, Queue>>,
    /// Places that a turn of this process is about to take.
    occupied: Mutex<HashSet<Spot>>,
    /// Places that somebody waits for.
    pub(super) places: Watched<Spot, ()>,
    /// Followed turns that run on other servers, with what is known about their progress.
    pub(super) followed: Watched<Followed, String>,
}

/// A turn of this process.
struct Here {
    asker: Asker,
    tenant: Uuid,
    /// None while the turn waits for its place, and for turns without a place.
    spot: Option<Spot>,
    /// Its end is on the way to the database, which alone knows from now on whether the place is taken.
    is_ending: bool,
}

/// The queue of those who wait for a place, in order.
pub(super) type Queue = Arc<tokio::sync::Mutex<()>>;

impl Running {
    #[must_use]
    pub fn new(instance: i64) -> Self {
        Self {
            instance,
            steady: Steady::default(),
            turns: Mutex::default(),
            queues: Mutex::default(),
            occupied: Mutex::default(),
            places: Watched::default(),
            followed: Watched::default(),
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<Uuid, Here>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a running turn with its place, until the guard is dropped.
    pub fn enter(&self, turn: Uuid, asker: &Asker, tenant: Uuid, spot: Option<Spot>) -> Entered<'_> {
        asker.counts();
        admission::step_out();
        pool::has_begun();
        self.turns().insert(turn, Here { asker: asker.clone(), tenant, spot, is_ending: false });
        if let Some(live) = &asker.live {
            live.begin(turn);
        }
        base::metrics::TURNS_RUNNING.inc();
        Entered { running: self, turn }
    }

    /// Registers a turn that waits for its place, until the guard is dropped or the turn runs.
    pub fn wait(&self, turn: Uuid, asker: &Asker, tenant: Uuid) -> Waits<'_> {
        asker.counts();
        admission::step_out();
        self.turns().insert(turn, Here { asker: asker.clone(), tenant, spot: None, is_ending: false });
        if let Some(live) = &asker.live {
            live.wait(turn);
        }
        Waits { running: self, turn }
    }

    /// The turn's end is about to be sent to the database. Whoever reads there that the turn has ended finds its place free here too.
    pub fn ends(&self, turn: Uuid) {
        if let Some(here) = self.turns().get_mut(&turn) {
            here.is_ending = true;
        }
    }

    fn leave(&self, turn: Uuid) {
        let Some(Here { asker, tenant, spot, .. }) = self.turns().remove(&turn) else { return };
        if let Some(live) = asker.live {
            live.end();
        }
        if let Some(spot) = spot {
            self.places.wake(&spot);
        }
        self.followed.wake(&(tenant, turn));
    }

    /// Cancels a turn of this process. Returns false if there is none with this id.
    pub fn cancel(&self, turn: Uuid) -> bool {
        self.turns().get(&turn).map(|here| here.asker.cancel.cancel()).is_some()
    }

    /// The log of a turn of this process, if somebody may be listening.
    pub fn live(&self, turn: Uuid) -> Option<Arc<Live>> {
        self.turns().get(&turn).and_then(|here| here.asker.live.clone())
    }

    /// The turns whose leases must be renewed. A turn that could not be closed is not among them, so it will be swept.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        self.turns().keys().copied().collect()
    }

    /// How many turns run or wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.turns().len()
    }

    /// Takes a place within this process, until the turn is registered. None if another of its turns has it.
    pub fn occupy(&self, spot: Spot) -> Option<Occupied<'_>> {
        if self.turns().values().any(|here| here.spot == Some(spot) && !here.is_ending) {
            return None;
        }
        let mut occupied = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.insert(spot).then(|| Occupied { running: self, spot })
    }

    /// The queue for a place.
    pub(super) fn queue(&self, spot: Spot) -> Queue {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        queues.entry(spot).or_default().clone()
    }

    /// How many turns are in queues, including those that have left the queue and run.
    #[must_use]
    pub fn in_line(&self) -> usize {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.values().map(|queue| Arc::strong_count(queue) - 1).sum()
    }

    /// News about a place: it may be free.
    pub(super) fn place(&self, spot: Spot) -> watch::Receiver<()> {
        self.places.watch(spot)
    }

    /// News about a turn of another server.
    pub(super) fn follow(&self, tenant: Uuid, turn: Uuid) -> watch::Receiver<String> {
        self.followed.watch((tenant, turn))
    }

    /// The places that somebody waits for and that no turn of this process has.
    pub(super) fn waited_for_elsewhere(&self) -> Vec<Spot> {
        let waited = self.places.keys();
        let turns = self.turns();
        let here: HashSet<Spot> = turns.values().filter_map(|here| here.spot).collect();
        waited.into_iter().filter(|spot| !here.contains(spot)).collect()
    }

    /// The followed turns that this process does not run.
    pub(super) fn followed_elsewhere(&self) -> Vec<Followed> {
        let followed = self.followed.keys();
        let turns = self.turns();
        followed.into_iter().filter(|(_, turn)| !turns.contains_key(turn)).collect()
    }

    /// Waits until somebody begins to wait for a place or to follow a turn.
    pub(super) async fn somebody_waits(&self) {
        tokio::select! {
            () = self.places.more() => {}
            () = self.followed.more() => {}
        }
    }

    /// Ends all following of turns of other servers.
    pub fn close(&self) {
        self.followed.close();
    }
}

/// A registered running turn.
pub struct Entered<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
        base::metrics::TURNS_RUNNING.dec();
    }
}

/// A place that a turn of this process is about to take, until this is dropped.
pub struct Occupied<'a> {
    running: &'a Running,
    spot: Spot,
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.running.occupied.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.spot);
    }
}

/// A registered turn that waits for its place.
pub struct Waits<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
    }
}
