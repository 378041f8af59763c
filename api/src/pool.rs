//! The pool of connections to the database.
//!
//! The connection that was given back last is taken first, and each thread has its own: a few connections stay hot, with
//! their plans and caches, and the rest are there for crowds. A connection that comes back in order is at once ready for
//! the next; one that was left in the middle of something is put in order first, or closed. Nothing here knows what the
//! connections are used for.

use std::{
    ops::{Deref, DerefMut},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use deadpool::managed::{
    self, Metrics, Object, PoolConfig, PoolError, QueueMode, RecycleResult, TimeoutType, Timeouts,
};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tokio::{runtime::Handle, time::timeout};

use crate::threads;

/// How long a request waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a connection may take to be put in order.
const TIDY_TIMEOUT: Duration = Duration::from_secs(5);
/// After how long without use a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Said to every new connection. Each is bound by row security and by time limits. Every statement has an index made for it:
/// without the last setting a plan made while a table was small would scan it, and be kept while it grows.
const GREETING: &str = "SET ROLE tavernkeep_app; SET statement_timeout = '5s'; SET lock_timeout = '2s'; \
     SET idle_in_transaction_session_timeout = '10s'; SET jit = off; SET enable_seqscan = off";

struct Opener(PgConnectOptions);

impl managed::Manager for Opener {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<PgConnection> {
        let mut connection = self.0.connect().await?;
        connection.execute(GREETING).await?;
        Ok(connection)
    }

    async fn recycle(&self, _: &mut PgConnection, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

/// Connections as the role that row security binds, in shares by thread.
#[derive(Clone)]
pub struct Pool(Arc<[managed::Pool<Opener>]>);

impl Pool {
    /// A pool of at most `connections_max`; it connects when it is first used.
    ///
    /// # Errors
    /// If `url` is not a PostgreSQL URL.
    pub fn new(url: &str, connections_max: u32) -> sqlx::Result<Self> {
        let options = PgConnectOptions::from_str(url)?.application_name("tavernkeep").statement_cache_capacity(500);
        let connections_max = usize::try_from(connections_max).unwrap_or(usize::MAX).max(1);
        let shares = threads::shares().min(connections_max);
        let share = |n: usize| {
            let config = PoolConfig {
                max_size: connections_max / shares + usize::from(n < connections_max % shares),
                timeouts: Timeouts { wait: Some(ACQUIRE_TIMEOUT), create: Some(ACQUIRE_TIMEOUT), recycle: None },
                queue_mode: QueueMode::Lifo,
            };
            let pool = managed::Pool::builder(Opener(options.clone())).config(config);
            pool.runtime(deadpool::Runtime::Tokio1).build().map_err(|e| sqlx::Error::Configuration(e.into()))
        };
        (0..shares).map(share).collect::<sqlx::Result<Vec<_>>>().map(|all| Self(all.into()))
    }

    /// The shares: this thread's own, then the others.
    fn shares(&self) -> impl Iterator<Item = &managed::Pool<Opener>> {
        let (before, from) = self.0.split_at(threads::share_of(self.0.len()));
        from.iter().chain(before)
    }

    /// A connection: one of this thread's, else another's, else the first that is given back.
    ///
    /// # Errors
    /// `PoolTimedOut` when none is free in time; what kept a new one from opening.
    pub async fn acquire(&self) -> sqlx::Result<Lease> {
        let now = Timeouts { wait: Some(Duration::ZERO), create: Some(ACQUIRE_TIMEOUT), recycle: None };
        let mut got = Err(PoolError::Closed);
        for share in self.shares() {
            got = share.timeout_get(&now).await;
            if !matches!(got, Err(PoolError::Timeout(TimeoutType::Wait))) {
                break;
            }
        }
        if let (Err(PoolError::Timeout(TimeoutType::Wait)), Some(own)) = (&got, self.shares().next()) {
            got = own.get().await;
        }
        match got {
            Ok(object) => Ok(Lease { object: Some(object), left: Left::Unknown }),
            Err(PoolError::Backend(e)) => Err(e),
            Err(PoolError::Closed) => Err(sqlx::Error::PoolClosed),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Connections there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.iter().map(|share| share.status().size).sum()
    }

    /// Closes connections that nobody has used for long.
    pub fn close_idle(&self) {
        for share in self.0.iter() {
            share.retain(|_, metrics| metrics.last_used() < IDLE_MAX);
        }
    }

    /// Closes them all; from now on nobody gets one.
    pub fn close(&self) {
        self.0.iter().for_each(managed::Pool::close);
    }
}

/// How a connection was left.
enum Left {
    /// Between two statements, outside a transaction.
    Clean,
    /// In a transaction that nobody ended.
    InTransaction,
    /// Perhaps in the middle of a statement, or broken.
    Unknown,
}

/// A connection on loan; dropping it gives it back.
pub struct Lease {
    object: Option<Object<Opener>>,
    left: Left,
}

impl Lease {
    /// Sends the statements that open a transaction, and gives the text that the last of them gave, if it gave any. From now on the
    /// connection is rolled back when it is dropped.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn begin(&mut self, statement: &str) -> sqlx::Result<Option<String>> {
        self.left = Left::InTransaction;
        let rows = self.fetch_all(sqlx::AssertSqlSafe(statement)).await?;
        rows.last().map(|row| sqlx::Row::try_get(row, 0)).transpose()
    }

    /// Commits what [`Lease::begin`] opened, and gives the connection back.
    ///
    /// # Errors
    /// What a deferred constraint found.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        self.execute("COMMIT").await?;
        self.left = Left::Clean;
        Ok(())
    }

    /// Gives back a connection whose statement ended as it should.
    pub fn done(mut self) {
        self.left = Left::Clean;
    }
}

impl Deref for Lease {
    type Target = PgConnection;
    #[expect(clippy::expect_used, reason = "it is taken out by drop alone")]
    fn deref(&self) -> &PgConnection {
        self.object.as_ref().expect("on loan")
    }
}

impl DerefMut for Lease {
    #[expect(clippy::expect_used, reason = "it is taken out by drop alone")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.object.as_mut().expect("on loan")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut object) = self.object.take() else { return };
        let in_transaction = match self.left {
            Left::Clean => return,
            Left::InTransaction => true,
            Left::Unknown => false,
        };
        let Ok(runtime) = Handle::try_current() else {
            drop(Object::take(object));
            return;
        };
        runtime.spawn(async move {
            let tidied = timeout(TIDY_TIMEOUT, async {
                if in_transaction { object.execute("ROLLBACK").await.map(drop) } else { object.ping().await }
            });
            if !matches!(tidied.await, Ok(Ok(()))) {
                drop(Object::take(object));
            }
        });
    }
}
