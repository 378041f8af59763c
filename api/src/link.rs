//! A connection to the database on which nothing is waited for without a limit.
//!
//! The server's time limits end a statement that takes long. They do not help where the server itself says nothing any more: its
//! process was stopped, or packets vanish. So every wait for an answer has a limit here as well: what the server was told, and a
//! little. A connection that is over it has proven silent: it is closed, and the others of its age are suspects ([`Doubt`]).
//!
//! [`Link`] is an executor of sqlx, so statements are run on it as on any connection; there is no way around the limit. Nothing
//! here knows what the connections are used for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use sqlx::{
    ConnectOptions, Connection, Execute, Executor, PgConnection, Postgres, SqlStr,
    postgres::{PgConnectOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long a new connection may take until it can be used.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How much longer than the server may take over a statement its answer is waited for.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// Who answered so shortly before another proved silent is not suspected of it.
const TRUSTED: Duration = Duration::from_secs(2);

/// How long the answer to a statement is waited for that the server gives up after `statement`.
#[must_use]
pub const fn limit_of(statement: Duration) -> Duration {
    statement.saturating_add(ON_THE_WAY)
}

/// The error of what took too long.
#[must_use]
pub fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the database did not answer in time"))
}

/// Whether it is [`silent`].
#[must_use]
pub fn is_silence(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(e) if e.kind() == io::ErrorKind::TimedOut)
}

/// Up to when what connections said last proves nothing any more.
#[derive(Debug)]
pub struct Doubt {
    since: Instant,
    /// Microseconds after `since`.
    until: AtomicU64,
}

impl Default for Doubt {
    fn default() -> Self {
        Self { since: Instant::now(), until: AtomicU64::new(0) }
    }
}

impl Doubt {
    fn cast(&self, until: Option<Instant>) {
        let Some(until) = until else { return };
        let micros = until.saturating_duration_since(self.since).as_micros();
        self.until.fetch_max(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn covers(&self, answered: Instant) -> bool {
        let micros = answered.saturating_duration_since(self.since).as_micros();
        micros < u128::from(self.until.load(Ordering::Relaxed))
    }
}

/// What is known of a connection by what came over it.
#[derive(Debug)]
struct Voice {
    doubt: Arc<Doubt>,
    answered: Instant,
    /// It is of no more use.
    is_lost: bool,
}

impl Voice {
    /// Nothing came in time.
    fn silence(&mut self) -> sqlx::Error {
        self.is_lost = true;
        self.doubt.cast(Instant::now().checked_sub(TRUSTED));
        silent()
    }

    /// What came.
    fn heard<T>(&mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        if let Err(sqlx::Error::Io(_) | sqlx::Error::Protocol(_)) = &answer {
            // Whatever broke it may have broken the others.
            self.is_lost = true;
            self.doubt.cast(Some(Instant::now()));
        } else {
            self.answered = Instant::now();
        }
        answer
    }
}

/// A connection whose answers are waited for no longer than its limit.
#[derive(Debug)]
pub struct Link {
    connection: PgConnection,
    limit: Duration,
    voice: Voice,
}

impl Link {
    /// Connects and says `greeting`, within [`CONNECT_LIMIT`]; then an answer may take `limit`.
    ///
    /// # Errors
    /// Those of the database; [`silent`] if it took too long.
    pub async fn open(
        options: &PgConnectOptions,
        greeting: &'static str,
        limit: Duration,
        doubt: Arc<Doubt>,
    ) -> sqlx::Result<Self> {
        let connected = timeout(CONNECT_LIMIT, async {
            let mut connection = options.connect().await?;
            connection.execute(greeting).await?;
            sqlx::Result::Ok(connection)
        });
        let connection = connected.await.unwrap_or_else(|_| Err(silent()))?;
        Ok(Self { connection, limit, voice: Voice { doubt, answered: Instant::now(), is_lost: false } })
    }

    /// From now on an answer may take so long.
    pub fn allow(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Asks for a sign of life.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn ping(&mut self) -> sqlx::Result<()> {
        let Link { connection, limit, voice } = self;
        in_time(*limit, voice, connection.ping()).await
    }

    /// Whether it can be used again: it was not lost, and no other of its age has proven silent since it answered last.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.voice.is_lost && !self.voice.doubt.covers(self.voice.answered)
    }

    /// When it answered last.
    #[must_use]
    pub fn answered(&self) -> Instant {
        self.voice.answered
    }
}

impl<'c> Executor<'c> for &'c mut Link {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<sqlx::Either<PgQueryResult, PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Link { connection, limit, voice } = self;
        Timely { answers: connection.fetch_many(query), limit: *limit, voice, timer: None }.boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Link { connection, limit, voice } = self;
        in_time(*limit, voice, connection.fetch_optional(query)).boxed()
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        let Link { connection, limit, voice } = self;
        in_time(*limit, voice, connection.prepare_with(sql, parameters)).boxed()
    }
}

async fn in_time<T>(
    limit: Duration,
    voice: &mut Voice,
    answer: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    match timeout(limit, answer).await {
        Ok(answer) => voice.heard(answer),
        Err(_) => Err(voice.silence()),
    }
}

/// Answers of which each comes in time, or an error instead.
struct Timely<'e, T> {
    answers: BoxStream<'e, sqlx::Result<T>>,
    limit: Duration,
    voice: &'e mut Voice,
    /// Runs while one is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T> Stream for Timely<'_, T> {
    type Item = sqlx::Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.answers.poll_next_unpin(cx) {
            Poll::Ready(answer) => {
                this.timer = None;
                Poll::Ready(answer.map(|answer| this.voice.heard(answer)))
            }
            Poll::Pending => {
                let limit = this.limit;
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
                match timer.poll_unpin(cx) {
                    Poll::Ready(()) => Poll::Ready(Some(Err(this.voice.silence()))),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}
