//! The pool of database connections.
//!
//! The pool takes the most recently returned connection first, from the current thread's own if possible. So a few connections stay
//! hot, with their plans and caches, and the rest serve peaks. A connection that was returned between two transactions is ready at
//! once. One that was left in the middle of something is cleaned up first, or closed. If no connection is free, the caller waits
//! for the first that any thread returns.
//!
//! Of the connections for work that begins, a tenant gets three quarters, so that its many or slow requests wait for each other and not
//! the others for them ([`share_of`]).
//!
//! Work that has begun takes precedence over work that begins: the pool reserves some connections for it ([`Need`]). Otherwise it
//! would queue behind newcomers, and its cost would be lost. This module does not know what connections are used for.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlx::{Executor, postgres::PgConnectOptions};
use tokio::{
    runtime::Handle,
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    task::yield_now,
    time::timeout,
};
use uuid::Uuid;

use crate::link::{Doubt, Link, limit_of};
use base::{metrics, shares::Shares, threads};

/// How long work that begins waits for a connection, unless the operator says otherwise.
pub const BEGIN_WAIT: Duration = Duration::from_secs(3);
/// How long work that has begun waits for a connection, at least.
const END_WAIT: Duration = Duration::from_secs(10);
/// How many callers may wait per connection. More are rejected at once.
const WAITING_EACH: usize = 64;
/// How long a connection may stay unused before it is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// The `statement_timeout` in [`GREETING`].
const STATEMENT: Duration = Duration::from_secs(5);

/// Sent on every new connection. It applies row security and time limits to the connection, and lets PostgreSQL close it soon
/// after this server vanishes. The last setting is there because every statement has an index made for it: a plan made while a
/// table was small would scan the table, and PostgreSQL would keep that plan as the table grows.
const GREETING: &str = "SET ROLE tavernkeep_app; SET statement_timeout = '5s'; SET lock_timeout = '2s'; \
     SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 3; SET jit = off; SET enable_seqscan = off";

/// What a connection is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Work that begins, and may still be rejected.
    Begin,
    /// Work that others wait for or that has already cost something: a turn in progress, or the server's own tasks.
    End,
}

tokio::task_local! {
    static NEED: Cell<Need>;
}

/// Runs work whose connections are taken as `need` says, until it calls [`has_begun`].
pub async fn with_need<T>(need: Need, work: impl Future<Output = T>) -> T {
    NEED.scope(Cell::new(need), work).await
}

/// Marks the current work as begun: it must come to its end from now on.
pub fn has_begun() {
    // Code without a `NEED` of its own belongs to a request, and requests are always `Need::Begin`.
    let _ = NEED.try_with(|need| need.set(Need::End));
}

/// Connections in the role that row security applies to, divided among threads.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    options: PgConnectOptions,
    connections_max: usize,
    /// How long work that begins waits for a connection.
    begin_wait: Duration,
    /// Unused connections, by the thread that opened them.
    idle: Box<[Mutex<Vec<Link>>]>,
    open: AtomicUsize,
    waiting: AtomicUsize,
    /// A permit for each connection that there may be.
    all: Arc<Semaphore>,
    /// A permit for each connection that beginning work may use.
    beginnings: Arc<Semaphore>,
    /// A tenant's share of `beginnings`.
    shares: Shares,
    doubt: Arc<Doubt>,
}

impl Pool {
    /// Creates a pool of at most `connections_max`, for which work that begins waits `begin_wait`. It connects when it is first used.
    ///
    /// # Errors
    /// If `url` is not a PostgreSQL URL.
    pub fn new(url: &str, connections_max: u32, begin_wait: Duration) -> sqlx::Result<Self> {
        let options = PgConnectOptions::from_str(url)?.application_name("tavernkeep").statement_cache_capacity(500);
        let connections_max = usize::try_from(connections_max).unwrap_or(usize::MAX).clamp(1, 10_000);
        let kept = (connections_max / 4).max(2).min(connections_max.saturating_sub(2));
        Ok(Self(Arc::new(Shared {
            options,
            connections_max,
            begin_wait,
            idle: (0..threads::shares().min(connections_max)).map(|_| Mutex::default()).collect(),
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            all: Arc::new(Semaphore::new(connections_max)),
            beginnings: Arc::new(Semaphore::new(connections_max - kept)),
            shares: Shares::new(share_of(connections_max - kept)),
            doubt: Arc::default(),
        })))
    }

    /// Takes a connection for work that belongs to no tenant: one of this thread's, else another thread's, else a new one, else the
    /// first that is returned.
    ///
    /// # Errors
    /// `PoolTimedOut` if none is free in time or too many callers wait; any error of opening a new one.
    pub async fn acquire(&self) -> sqlx::Result<Lease> {
        self.acquire_for(None).await
    }

    /// [`Pool::acquire`] for a tenant's work. It also waits while the tenant has its share of connections.
    ///
    /// # Errors
    /// As for [`Pool::acquire`].
    pub async fn acquire_for(&self, tenant: Option<Uuid>) -> sqlx::Result<Lease> {
        let place = self.0.place(tenant).await?;
        let (link, share) = match self.0.take().await {
            Some(idle) => idle,
            None => (self.0.open().await?, threads::share_of(self.0.idle.len())),
        };
        Ok(Lease { held: Some(Held { link, share, pool: self.0.clone(), _place: place }), left: Left::Unknown })
    }

    /// The number of open connections.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// The number of callers that wait for a connection.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// The largest number of connections.
    #[must_use]
    pub fn connections_max(&self) -> usize {
        self.0.connections_max
    }

    /// Closes connections that have not been used for long.
    pub fn close_idle(&self) {
        self.0.retain(|link| link.answered().elapsed() < IDLE_MAX);
    }

    /// Closes all connections. Nobody gets one from now on.
    pub fn close(&self) {
        self.0.all.close();
        self.0.beginnings.close();
        self.0.retain(|_| false);
    }
}

/// How many of the connections for work that begins a tenant may use: three quarters, but at least two, because some work takes a second
/// connection while it holds one.
fn share_of(beginnings: usize) -> usize {
    beginnings.saturating_sub((beginnings / 4).max(1)).max(2)
}

/// The right to one connection. The other permits are for work that begins: one of all such work, and one of its tenant's share.
type Place = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>);

impl Shared {
    fn idle(&self, share: usize) -> MutexGuard<'_, Vec<Link>> {
        self.idle[share].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retain(&self, keep: impl Fn(&Link) -> bool) {
        for share in 0..self.idle.len() {
            let mut idle = self.idle(share);
            let before = idle.len();
            idle.retain(&keep);
            self.open.fetch_sub(before - idle.len(), Ordering::Relaxed);
        }
    }

    async fn place(&self, tenant: Option<Uuid>) -> sqlx::Result<Place> {
        let need = NEED.try_with(Cell::get).unwrap_or(Need::Begin);
        let share = tenant.filter(|_| need == Need::Begin).map(|tenant| self.shares.of(tenant));
        if let Some(place) = self.free_place(need, share.as_ref()) {
            return Ok(place);
        }
        let _waits = Waits::among(&self.waiting, need, self.connections_max.saturating_mul(WAITING_EACH))?;
        let wait = if need == Need::Begin { self.begin_wait } else { END_WAIT.max(self.begin_wait) };
        let place = timeout(wait, async {
            // A tenant waits for its own share first, so that it keeps nothing from the others meanwhile.
            let own = match share {
                Some(share) => Some(share.acquire_owned().await?),
                None => None,
            };
            let beginning = match need {
                Need::Begin => Some(self.beginnings.clone().acquire_owned().await?),
                Need::End => None,
            };
            Ok::<_, AcquireError>((self.all.clone().acquire_owned().await?, beginning, own))
        });
        match place.await {
            Ok(place) => place.map_err(|_| sqlx::Error::PoolClosed),
            Err(_) => Err(refused()),
        }
    }

    /// Takes a permit without waiting. This overtakes nobody, because returned permits go to waiting callers first.
    fn free_place(&self, need: Need, share: Option<&Arc<Semaphore>>) -> Option<Place> {
        let own = match share {
            Some(share) => Some(share.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let beginning = match need {
            Need::Begin => Some(self.beginnings.clone().try_acquire_owned().ok()?),
            Need::End => None,
        };
        Some((self.all.clone().try_acquire_owned().ok()?, beginning, own))
    }

    /// Takes an unused connection and its share. `None` means that the caller may open a new one, which is already counted. A caller
    /// that holds a permit always gets one or the other, at the latest when a connection between two owners has arrived.
    async fn take(&self) -> Option<(Link, usize)> {
        loop {
            let own = threads::share_of(self.idle.len());
            for share in (0..self.idle.len()).map(|n| (own + n) % self.idle.len()) {
                while let Some(link) = { self.idle(share).pop() } {
                    if link.is_sound() {
                        return Some((link, share));
                    }
                    self.open.fetch_sub(1, Ordering::Relaxed);
                }
            }
            let more = |open: usize| (open < self.connections_max).then_some(open + 1);
            if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
                return None;
            }
            yield_now().await;
        }
    }

    /// Opens the connection that [`Shared::take`] has counted.
    async fn open(&self) -> sqlx::Result<Link> {
        struct Counted<'a>(Option<&'a AtomicUsize>);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.map(|open| open.fetch_sub(1, Ordering::Relaxed));
            }
        }
        let mut counted = Counted(Some(&self.open));
        let link = Link::open(&self.options, GREETING, limit_of(STATEMENT), self.doubt.clone()).await?;
        counted.0 = None;
        Ok(link)
    }

    fn give_back(&self, mut link: Link, share: usize) {
        if !link.is_sound() || self.all.is_closed() {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        link.allow(limit_of(STATEMENT));
        self.idle(share).push(link);
    }
}

fn refused() -> sqlx::Error {
    metrics::REFUSED.with_label_values(&["connections"]).inc();
    sqlx::Error::PoolTimedOut
}

/// A waiting caller, counted until this is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn among(waiting: &'a AtomicUsize, need: Need, most: usize) -> sqlx::Result<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Self(waiting);
        if need == Need::Begin && before >= most { Err(refused()) } else { Ok(waits) }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state in which a connection was returned.
enum Left {
    /// Between two statements, outside a transaction.
    Clean,
    /// In a transaction that was not ended.
    InTransaction,
    /// Perhaps in the middle of a statement, or broken.
    Unknown,
}

/// A connection and the permit for it. The connection is returned before the permit.
struct Held {
    link: Link,
    share: usize,
    pool: Arc<Shared>,
    _place: Place,
}

impl Held {
    fn back(self) {
        let Self { link, share, pool, _place } = self;
        pool.give_back(link, share);
    }

    fn close(self) {
        let Self { link, pool, _place, .. } = self;
        drop(link);
        pool.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A borrowed connection. Dropping it returns it.
pub struct Lease {
    held: Option<Held>,
    left: Left,
}

impl Lease {
    /// Sends the statements that open a transaction, and returns the text of the last one's result, if any. `statement_max` is the limit
    /// for each statement of the transaction; `None` keeps the default. From now on, dropping the connection rolls back.
    ///
    /// # Errors
    /// Database errors.
    pub async fn begin(&mut self, statement: &str, statement_max: Option<Duration>) -> sqlx::Result<Option<String>> {
        self.left = Left::InTransaction;
        if let Some(most) = statement_max {
            self.allow(limit_of(most));
        }
        let rows = self.fetch_all(sqlx::AssertSqlSafe(statement)).await?;
        rows.last().map(|row| sqlx::Row::try_get(row, 0)).transpose()
    }

    /// Commits the transaction that [`Lease::begin`] opened, and returns the connection.
    ///
    /// # Errors
    /// Violations of deferred constraints, and database errors.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        self.execute("COMMIT").await?;
        self.left = Left::Clean;
        Ok(())
    }

    /// Returns a connection whose statement completed.
    pub fn give_back(mut self) {
        self.left = Left::Clean;
    }
}

impl Deref for Lease {
    type Target = Link;
    #[expect(clippy::expect_used, reason = "it is taken out by drop alone")]
    fn deref(&self) -> &Link {
        &self.held.as_ref().expect("on loan").link
    }
}

impl DerefMut for Lease {
    #[expect(clippy::expect_used, reason = "it is taken out by drop alone")]
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.held.as_mut().expect("on loan").link
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        let in_transaction = match self.left {
            Left::Clean => return held.back(),
            Left::InTransaction => true,
            Left::Unknown => false,
        };
        let Ok(runtime) = Handle::try_current() else { return held.close() };
        if !held.link.is_sound() {
            return held.close();
        }
        runtime.spawn(async move {
            let link = &mut held.link;
            let tidied = if in_transaction { link.execute("ROLLBACK").await.map(drop) } else { link.ping().await };
            match tidied {
                Ok(()) => held.back(),
                Err(_) => held.close(),
            }
        });
    }
}
