//! A database connection that never waits for an answer without a time limit.
//!
//! PostgreSQL's own limits end a slow statement. They do not help if PostgreSQL itself falls silent because its process was
//! stopped or packets are lost. So this module also limits every wait: to the time that PostgreSQL was given, plus a little. A
//! connection that exceeds it is closed, and connections that were last used as long ago become suspect ([`Doubt`]).
//!
//! [`Link`] is a sqlx executor, so it runs statements like any connection, and none can bypass the limit. This module does not
//! know what connections are used for.

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

/// How long opening a connection may take.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How much longer than PostgreSQL's own limit we wait for an answer.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// A connection that answered this recently before another fell silent is not suspect.
const TRUSTED: Duration = Duration::from_secs(2);

/// How long to wait for the answer to a statement that PostgreSQL itself gives up after `statement`.
#[must_use]
pub const fn limit_of(statement: Duration) -> Duration {
    statement.saturating_add(ON_THE_WAY)
}

/// The error for a database that took too long.
#[must_use]
pub fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the database did not answer in time"))
}

/// Whether an error is [`silent`].
#[must_use]
pub fn is_silence(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(e) if e.kind() == io::ErrorKind::TimedOut)
}

/// The time up to which a connection's last answer no longer proves that it works.
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

/// When a connection last answered, and whether it still can.
#[derive(Debug)]
struct Voice {
    doubt: Arc<Doubt>,
    answered: Instant,
    /// Whether the connection can no longer be used.
    is_lost: bool,
}

impl Voice {
    /// Records that no answer came in time.
    fn silence(&mut self) -> sqlx::Error {
        self.is_lost = true;
        self.doubt.cast(Instant::now().checked_sub(TRUSTED));
        silent()
    }

    /// Records an answer.
    fn record_answer<T>(&mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        if let Err(sqlx::Error::Io(_) | sqlx::Error::Protocol(_)) = &answer {
            // The cause may have broken other connections as well.
            self.is_lost = true;
            self.doubt.cast(Some(Instant::now()));
        } else {
            self.answered = Instant::now();
        }
        answer
    }
}

/// A connection that limits its wait for each answer.
#[derive(Debug)]
pub struct Link {
    connection: PgConnection,
    limit: Duration,
    voice: Voice,
}

impl Link {
    /// Connects and sends `greeting`, within [`CONNECT_LIMIT`]. After that each answer may take `limit`.
    ///
    /// # Errors
    /// Database errors; [`silent`] if it took too long.
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

    /// Sets how long each answer may take from now on.
    pub fn allow(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// Database errors.
    pub async fn ping(&mut self) -> sqlx::Result<()> {
        let Link { connection, limit, voice } = self;
        in_time(*limit, voice, connection.ping()).await
    }

    /// Whether the connection can be used again: it is not lost, and its last answer is recent enough ([`Doubt`]).
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.voice.is_lost && !self.voice.doubt.covers(self.voice.answered)
    }

    /// When the connection last answered.
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
        Ok(answer) => voice.record_answer(answer),
        Err(_) => Err(voice.silence()),
    }
}

/// A stream of answers. Each must come in time, or the stream yields an error.
struct Timely<'e, T> {
    answers: BoxStream<'e, sqlx::Result<T>>,
    limit: Duration,
    voice: &'e mut Voice,
    /// Runs while the stream waits for an answer.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T> Stream for Timely<'_, T> {
    type Item = sqlx::Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.answers.poll_next_unpin(cx) {
            Poll::Ready(answer) => {
                this.timer = None;
                Poll::Ready(answer.map(|answer| this.voice.record_answer(answer)))
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
