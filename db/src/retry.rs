//! Retries a transaction after errors that will pass.
//!
//! Every write goes through this module: [`tenancy::write`](crate::tenancy::write) for a complete transaction, [`repeat`] and
//! [`Tries`] for code that opens its own. Work that goes in steps (reverts, erasures, removals) is different: a step that failed is
//! taken again later, by any server.
//!
//! An error will pass if another transaction was in the way ([`Error::is_transient`]) or the database could not be reached
//! ([`Error::is_outage`]). A transaction that may have been committed is never retried ([`Error::in_doubt`]). Code that can find out
//! does so and then clears the doubt ([`Error::settled`]).
//!
//! To add a way to write, pass [`BRIEF`] if somebody waits for the answer and can ask again, [`PAID`] if a model was paid for the
//! text that is written, [`PROMISED`] if the client was told that it will be done, or [`UNASKED`] if nobody can ask again.

use std::time::Duration;

use rand::RngExt;
use tokio::time::{Instant, sleep};

use crate::pool::Pool;
use base::{
    error::{Error, Result},
    metrics,
    stored::Columns,
};

/// How long to retry.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// No try begins later than this.
    within: Duration,
    /// How many conflicts with other transactions are always retried, and how many at most within the time.
    conflicts_min: u32,
    conflicts_max: u32,
}

/// For a write whose client waits and can ask again.
pub const BRIEF: Patience = Patience { within: Duration::from_millis(1200), conflicts_min: 2, conflicts_max: 9 };
/// For a result that a model was paid for. The turn stays with this server just as long: its lease is renewed as soon as the
/// database is back.
pub const PAID: Patience = Patience { within: Duration::from_secs(30), conflicts_min: 2, conflicts_max: 9 };
/// For work that was promised to a client who has left, such as a turn that waited for its place.
pub const PROMISED: Patience = Patience { within: Duration::from_secs(30), conflicts_min: 2, conflicts_max: 19 };
/// For what the server does on its own: after an answer, or for a stream.
pub const UNASKED: Patience = Patience { within: Duration::from_secs(5), conflicts_min: 2, conflicts_max: 19 };

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The tries of one operation.
#[derive(Debug)]
pub struct Tries {
    patience: Patience,
    begun: Instant,
    conflicts: u32,
    pause: Duration,
}

impl Tries {
    /// Begins with the first try.
    #[must_use]
    pub fn with(patience: Patience) -> Self {
        Self { patience, begun: Instant::now(), conflicts: 0, pause: PAUSE_FIRST }
    }

    /// Whether another conflict would end the tries.
    #[must_use]
    pub fn is_last(&self) -> bool {
        let Patience { within, conflicts_min, conflicts_max } = self.patience;
        self.conflicts >= conflicts_max || (self.conflicts >= conflicts_min && self.begun.elapsed() >= within)
    }

    /// Waits before the next try. False if retrying would not help or has taken too long.
    pub async fn wait_to_retry(&mut self, error: &Error) -> bool {
        if error.in_doubt() || !(error.is_transient() || error.is_outage()) {
            return false;
        }
        let pause = self.pause.mul_f64(rand::rng().random_range(0.5..1.0));
        if error.is_transient() {
            if self.is_last() {
                return false;
            }
            self.conflicts += 1;
        } else if self.begun.elapsed() + pause > self.patience.within {
            return false;
        }
        metrics::WRITES_REPEATED.with_label_values(&[if error.is_transient() { "conflict" } else { "outage" }]).inc();
        sleep(pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// Runs `work`, and retries errors that will pass.
///
/// # Errors
/// The last try's.
pub async fn repeat<T>(patience: Patience, work: impl AsyncFn() -> Result<T>) -> Result<T> {
    let mut tries = Tries::with(patience);
    loop {
        match work().await {
            Err(error) if tries.wait_to_retry(&error).await => {}
            result => return result,
        }
    }
}

/// Selects the transaction's id in PostgreSQL and the second in which it began.
pub const NUMBER: &str = "SELECT pg_current_xact_id()::text || '@' || extract(epoch FROM now())";

/// Finds out, by its [`NUMBER`], whether a transaction whose `COMMIT` got no answer was committed.
///
/// A crash of PostgreSQL forgets transactions that were not on disk yet, and may use their ids again. Every recovery ends with a
/// checkpoint. So if there was a checkpoint since the transaction began, its id proves nothing.
///
/// # Errors
/// `unavailable`: it can be retried if the transaction was not committed, and is in doubt if that cannot be found out.
pub async fn fate(pool: &Pool, number: Option<&str>, patience: Patience, lost: Error) -> Result<()> {
    // A transaction that only read has no id and lost nothing.
    let Some(number) = number.filter(|_| lost.in_doubt()) else { return Err(lost.settled()) };
    let mut tries = Tries::with(patience);
    loop {
        match status(pool, number).await {
            Ok(Some("committed")) => {
                tracing::info!(number, "a commit without an answer had succeeded");
                return Ok(());
            }
            Ok(Some("aborted")) => return Err(lost.settled()),
            // Its connection is gone, and PostgreSQL has not noticed yet or is still working.
            Ok(Some(_)) if tries.wait_to_retry(&Error::from(sqlx::Error::PoolTimedOut)).await => {}
            Err(error) if tries.wait_to_retry(&error).await => {}
            fate => {
                let cause = fate.err().map(|error| error.to_string());
                tracing::warn!(number, cause, "could not find out whether a transaction was committed");
                return Err(lost);
            }
        }
    }
}

async fn status(pool: &Pool, number: &str) -> Result<Option<&'static str>> {
    // The checkpoint's time has whole seconds only.
    let query = sqlx::query(
        "SELECT CASE WHEN c.checkpoint_time < to_timestamp(split_part($1, '@', 2)::float8) - interval '1 second' \
                THEN pg_xact_status(split_part($1, '@', 1)::xid8) END AS fate FROM pg_control_checkpoint() c",
    )
    .bind(number);
    let mut lease = pool.acquire().await?;
    let row = query.fetch_one(&mut *lease).await?;
    lease.give_back();
    let known = ["committed", "aborted", "in progress"];
    Ok(row.read::<Option<String>>("fate")?.and_then(|fate| known.into_iter().find(|known| *known == fate)))
}
