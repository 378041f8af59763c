//! The connections of this server by campaign and session, and this server's open questions to other servers.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    outbox::{Close, Outbox},
    question::Answer,
    waiting::Waiting,
};
use base::{
    clock,
    error::{Code, Error, Result},
    metrics,
};
use db::feeds::Feed;
use edge::caller::Caller;
use world::playing::{Playing, Reader};

/// The most sockets of this server that may wait for their first frame.
const UNKNOWN_MAX: usize = 1024;
/// The same for one address.
const UNKNOWN_PER_ADDRESS_MAX: usize = 128;

/// A frontend's open connection.
pub struct Connection {
    pub id: Uuid,
    pub tenant: Uuid,
    pub session: Playing,
    pub outbox: Outbox,
    pub waiting: Waiting,
    caller: RwLock<Caller>,
    heard: Mutex<Instant>,
    /// Whether the database knows that this is the session's connection. Other servers cannot find it before.
    is_written: AtomicBool,
}

impl Connection {
    #[must_use]
    pub fn new(caller: &Caller, session: Playing, outbox: Outbox) -> Self {
        Self {
            id: clock::id(),
            tenant: caller.tenant_id(),
            session,
            outbox,
            waiting: Waiting::default(),
            caller: RwLock::new(caller.clone()),
            heard: Mutex::new(Instant::now()),
            is_written: AtomicBool::new(false),
        }
    }

    /// The campaign whose feed the connection follows.
    #[must_use]
    pub fn feed(&self) -> Feed {
        (self.tenant, self.session.campaign)
    }

    /// The caller, as of the last check of the credential.
    #[must_use]
    pub fn caller(&self) -> Caller {
        self.caller.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the result of checking the credential again.
    pub fn renew(&self, caller: Caller) {
        *self.caller.write().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    /// Whose messages the connection receives: those of the session's AI, or only those that its credential may read.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let caller = self.caller();
        if caller.sees_secrets() {
            return self.session.reader();
        }
        Reader { role: entity::session::Role::Player, player: caller.player }
    }

    /// Notes that the frontend sent something.
    pub fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the frontend last sent something.
    #[must_use]
    pub fn last_heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of a campaign.
#[derive(Default)]
struct Room {
    by_session: HashMap<Uuid, Arc<Connection>>,
    /// Stops the task that follows the campaign for these connections.
    empty: CancellationToken,
}

/// The result of adding a connection.
#[derive(Default)]
pub struct Added {
    /// For the first connection of a campaign: cancelled when the last one leaves.
    pub first: Option<CancellationToken>,
    /// The session's previous connection. It stays open until the new one is stored; after that, close it.
    pub replaced: Option<Arc<Connection>>,
}

/// All connections of this server.
#[derive(Default)]
pub struct Hub {
    rooms: Mutex<HashMap<Feed, Room>>,
    /// Sockets that have not sent their first frame, by address.
    unknown: Mutex<Unknowns>,
    /// Open questions to frontends on other servers, by id, with their tenants.
    pub(super) awaited: Mutex<HashMap<Uuid, (Uuid, oneshot::Sender<Answer>)>>,
    /// Cancelled once there is anything to do for other servers.
    pub(super) used: CancellationToken,
    /// Notified when mail may have come.
    pub(super) mail: Notify,
    /// Whether the server receives the database's notifications. Without them it polls for mail.
    pub(super) listening: AtomicBool,
    closed: AtomicBool,
}

#[derive(Default)]
struct Unknowns {
    count: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Holds a place among the sockets that have not sent their first frame.
pub struct Unknown(Arc<Hub>, IpAddr);

impl Drop for Unknown {
    fn drop(&mut self) {
        let mut unknown = self.0.unknown();
        unknown.count = unknown.count.saturating_sub(1);
        if let Entry::Occupied(mut here) = unknown.by_address.entry(self.1) {
            *here.get_mut() -= 1;
            if *here.get() == 0 {
                here.remove();
            }
        }
    }
}

impl Hub {
    fn rooms(&self) -> MutexGuard<'_, HashMap<Feed, Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self) -> MutexGuard<'_, Unknowns> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for a socket that has not sent its first frame.
    ///
    /// # Errors
    /// `unavailable` if there are too many such sockets, in total or from this address.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Unknown> {
        let mut unknown = self.unknown();
        let here = unknown.by_address.get(&address).copied().unwrap_or(0);
        if unknown.count >= UNKNOWN_MAX || here >= UNKNOWN_PER_ADDRESS_MAX {
            let detail = "Too many connections are being opened; try again in a moment.";
            return Err(Error::new(Code::Unavailable, detail).retry_after(2));
        }
        unknown.count += 1;
        unknown.by_address.insert(address, here + 1);
        Ok(Unknown(self.clone(), address))
    }

    /// Makes a connection its session's, before the database knows of it. Call [`Hub::keep`] once the database does, or
    /// [`Hub::take_back`] if it never will.
    ///
    /// # Errors
    /// `rate_limited` if the tenant already has `tenant_max` connections on this server; `unavailable` while shutting down.
    pub fn add(&self, new: &Arc<Connection>, tenant_max: usize) -> Result<Added> {
        let mut rooms = self.rooms();
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(Code::Unavailable, "The server is shutting down."));
        }
        let own = rooms.iter().filter(|(feed, _)| feed.0 == new.tenant).map(|(_, r)| r.by_session.len()).sum::<usize>();
        let replaces = rooms.get(&new.feed()).is_some_and(|r| r.by_session.contains_key(&new.session.id));
        if own >= tenant_max && !replaces {
            return Err(Error::new(
                Code::RateLimited,
                format!("A tenant may have at most {tenant_max} connections per server."),
            ));
        }
        let room = rooms.entry(new.feed()).or_default();
        let first = room.by_session.is_empty().then(|| room.empty.clone());
        let replaced = room.by_session.insert(new.session.id, new.clone());
        if replaced.is_none() {
            metrics::BRIDGE_CONNECTIONS.inc();
        }
        drop(rooms);
        self.used.cancel();
        self.mail.notify_one();
        Ok(Added { first, replaced })
    }

    /// The database has stored the connection as its session's. Closes the connection that it replaced.
    pub fn keep(&self, new: &Connection, replaced: Option<&Connection>) {
        new.is_written.store(true, Ordering::Release);
        if let Some(old) = replaced {
            old.outbox.close(Close::TakenOver);
        }
    }

    /// The connection could not be established. Puts the previous one back, unless that has ended meanwhile.
    pub fn take_back(&self, new: &Connection, replaced: Option<Arc<Connection>>) {
        if let Some(old) = replaced.filter(|old| !old.outbox.is_ended()) {
            let mut rooms = self.rooms();
            let place = rooms.get_mut(&new.feed()).and_then(|room| room.by_session.get_mut(&new.session.id));
            if let Some(place) = place.filter(|place| place.id == new.id) {
                if self.closed.load(Ordering::Acquire) {
                    old.outbox.close(Close::ShuttingDown);
                }
                *place = old;
                new.waiting.forget_all();
                return;
            }
        }
        self.remove(new);
    }

    /// Removes a connection unless it was replaced. Everyone waiting for its replies learns at once that none will come.
    pub fn remove(&self, gone: &Connection) {
        gone.waiting.forget_all();
        let mut rooms = self.rooms();
        let Some(room) = rooms.get_mut(&gone.feed()) else { return };
        if room.by_session.get(&gone.session.id).is_some_and(|c| c.id == gone.id) {
            room.by_session.remove(&gone.session.id);
            metrics::BRIDGE_CONNECTIONS.dec();
        }
        if room.by_session.is_empty() {
            room.empty.cancel();
            rooms.remove(&gone.feed());
        }
    }

    /// The connection of a session.
    #[must_use]
    pub fn find(&self, tenant: Uuid, campaign: Uuid, session: Uuid) -> Option<Arc<Connection>> {
        let found = self.rooms().get(&(tenant, campaign))?.by_session.get(&session).cloned();
        found.filter(|c| !c.outbox.is_ended())
    }

    /// The connections of a campaign.
    #[must_use]
    pub fn room(&self, feed: Feed) -> Vec<Arc<Connection>> {
        self.rooms().get(&feed).map(|room| room.by_session.values().cloned().collect()).unwrap_or_default()
    }

    /// The ids of all connections that the database knows about.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        let rooms = self.rooms();
        let connections = rooms.values().flat_map(|room| room.by_session.values());
        connections.filter(|c| c.is_written.load(Ordering::Acquire)).map(|c| c.id).collect()
    }

    /// Closes the connections with these ids.
    pub fn close(&self, ids: &[Uuid], why: Close) {
        for connection in
            self.rooms().values().flat_map(|room| room.by_session.values()).filter(|c| ids.contains(&c.id))
        {
            connection.outbox.close(why);
        }
    }

    /// Closes every connection and accepts no new ones.
    pub fn shut(&self) {
        let rooms = self.rooms();
        self.closed.store(true, Ordering::Release);
        rooms.values().flat_map(|room| room.by_session.values()).for_each(|c| c.outbox.close(Close::ShuttingDown));
    }
}
