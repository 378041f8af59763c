//! One transaction, again, while what stopped it will pass.
//!
//! Everything that writes comes by here: [`write()`] for a transaction of its own, [`repeat`] and [`Tries`] for what begins its own.
//! An error passes if it says that another transaction was in the way ([`Error::is_transient`]) or that the database could not be
//! reached ([`Error::is_outage`]). Nothing is repeated of which nobody knows whether it was committed ([`Error::in_doubt`]): whoever
//! can find that out does, and then says so ([`Error::settled`]).
//!
//! To add a way to write: pass [`BRIEF`] if somebody waits for the answer and can ask again, [`PAID`] if a model was paid for what
//! is written.

use std::time::Duration;

use rand::RngExt;
use tokio::time::{Instant, sleep};

use crate::{
    error::{Error, Result},
    ops::metrics,
    pool::Pool,
    stored::Columns,
    tenancy::{Actor, TenantTx},
};

/// How long something is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// No try begins after this.
    within: Duration,
    /// Tries that met other transactions and lost, which may follow each other at once, and how many more there are within the time.
    conflicts_min: u32,
    conflicts_max: u32,
}

/// For a write whose client waits, and can ask again.
pub const BRIEF: Patience = Patience { within: Duration::from_millis(1200), conflicts_min: 2, conflicts_max: 9 };
/// For what a model was paid for. A turn stays its server's for as long: its lease is renewed as soon as there is a database again.
pub const PAID: Patience = Patience { within: Duration::from_secs(30), conflicts_min: 2, conflicts_max: 9 };

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Tries of one thing.
#[derive(Debug)]
pub struct Tries {
    patience: Patience,
    begun: Instant,
    conflicts: u32,
    pause: Duration,
}

impl Tries {
    /// The first is under way.
    #[must_use]
    pub fn with(patience: Patience) -> Self {
        Self { patience, begun: Instant::now(), conflicts: 0, pause: PAUSE_FIRST }
    }

    /// Whether a try that meets another transaction now and loses is the last one.
    #[must_use]
    pub fn is_last(&self) -> bool {
        let Patience { within, conflicts_min, conflicts_max } = self.patience;
        self.conflicts >= conflicts_max || (self.conflicts >= conflicts_min && self.begun.elapsed() >= within)
    }

    /// Waits for a moment in which to try again; false if that would lead to the same error, or took too long already.
    pub async fn again(&mut self, error: &Error) -> bool {
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

/// Does something again while what stopped it will pass.
///
/// # Errors
/// The last try's.
pub async fn repeat<T>(patience: Patience, work: impl AsyncFn() -> Result<T>) -> Result<T> {
    let mut tries = Tries::with(patience);
    loop {
        match work().await {
            Err(error) if tries.again(&error).await => {}
            result => return result,
        }
    }
}

/// Runs `work` in a transaction and commits it; again, while what stopped it will pass.
///
/// # Errors
/// Those of `work`; nothing of it stays behind, unless the error is in doubt.
pub async fn write<T>(pool: &Pool, actor: Actor, work: impl AsyncFn(&TenantTx) -> Result<T>) -> Result<T> {
    repeat(BRIEF, async || {
        let tx = TenantTx::write(pool, &actor).await?;
        let done = work(&tx).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

/// Selects the number that PostgreSQL knows a transaction by, and the second in which that began.
pub(crate) const NUMBER: &str = "SELECT pg_current_xact_id()::text || '@' || extract(epoch FROM now())";

/// Finds out what became of a transaction whose `COMMIT` had no answer, by its [`NUMBER`].
///
/// A crash of PostgreSQL forgets what was not on the disk, and may give its number to another transaction. Every recovery ends with a
/// checkpoint: after one that came since the transaction began, its number says nothing.
///
/// # Errors
/// `unavailable`: to be tried again if it was not committed; in doubt if that cannot be found out.
pub(crate) async fn fate(pool: &Pool, number: Option<&str>, patience: Patience, lost: Error) -> Result<()> {
    // What only read has none, and nothing to lose.
    let Some(number) = number.filter(|_| lost.in_doubt()) else { return Err(lost.settled()) };
    let mut tries = Tries::with(patience);
    loop {
        match status(pool, number).await {
            Ok(Some("committed")) => {
                tracing::info!(number, "a commit whose answer was lost had been written");
                return Ok(());
            }
            Ok(Some("aborted")) => return Err(lost.settled()),
            // Its connection is gone, and PostgreSQL has not noticed or is not done.
            Ok(Some(_)) if tries.again(&Error::from(sqlx::Error::PoolTimedOut)).await => {}
            Err(error) if tries.again(&error).await => {}
            fate => {
                let cause = fate.err().map(|error| error.to_string());
                tracing::warn!(number, cause, "whether a transaction was committed could not be found out");
                return Err(lost);
            }
        }
    }
}

async fn status(pool: &Pool, number: &str) -> Result<Option<&'static str>> {
    // The checkpoint's time is in whole seconds.
    let query = sqlx::query(
        "SELECT CASE WHEN c.checkpoint_time < to_timestamp(split_part($1, '@', 2)::float8) - interval '1 second' \
                THEN pg_xact_status(split_part($1, '@', 1)::xid8) END AS fate FROM pg_control_checkpoint() c",
    )
    .bind(number);
    let mut lease = pool.acquire().await?;
    let row = query.fetch_one(&mut *lease).await?;
    lease.done();
    let known = ["committed", "aborted", "in progress"];
    Ok(row.read::<Option<String>>("fate")?.and_then(|fate| known.into_iter().find(|known| *known == fate)))
}
