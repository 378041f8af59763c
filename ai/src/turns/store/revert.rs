//! Reverts a turn in steps. Each step is a transaction of well under a second, and its progress is stored in the turn's row.
//!
//! A turn with few effects is reverted in the transaction that ends it. For a larger one, the row says what it will become
//! (`revert_as`) and how far the revert is. Until the last step it keeps its place and runs no tools. The server that works on it
//! has a short lease, and any server may go on when the lease has expired. A failed step is retried later, after longer and longer
//! pauses. A row that fails again and again is set aside as a conflict. Never revert anything outside of a step: a step locks the
//! turn's row, and only that keeps two servers from reverting the same change twice.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    metrics,
    stored::Columns,
};
use db::{
    pool::Pool,
    tenancy::{Actor, Origin, TURN_LEASE_SECONDS, TenantTx},
};
use world::encounters;

/// The most changes in the first step, which is often the only one.
pub(super) const ROWS_AT_FIRST: i32 = 500;
/// The smallest and largest number of changes per step. The number is adjusted so that a step takes about [`STEP_TARGET`].
const ROWS_MIN: i32 = 50;
const ROWS_MAX: i32 = 1000;
const STEP_TARGET: Duration = Duration::from_millis(150);
/// After this many milliseconds a step starts nothing more.
const STEP_MS: i32 = 400;
/// After each step others may use the database for as long as the step took, within these bounds.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// After this many failures caused by a row: check each row by itself; then only one row per step; then leave that row as it is.
pub(super) const CAREFUL_AFTER: i32 = 3;
const ALONE_AFTER: i32 = 5;
const LEAVE_AFTER: i32 = 7;
/// The most characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 500;

/// The result of a revert, or of a part of it.
pub struct Reverted {
    /// The conflicts so far, a list of at most a hundred.
    pub conflicts: Value,
    /// The number of all conflicts.
    pub total: i64,
    /// How many rows that the turn created had already been deleted by somebody else.
    pub gone: i64,
    /// Whether nothing is left to revert.
    pub is_done: bool,
}

/// The limits of a step.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub rows: i32,
    pub milliseconds: i32,
    /// How many failures were caused by a row so far.
    pub(super) stuck: i32,
}

impl Pace {
    /// For a first step.
    pub const FIRST: Self = Self { rows: ROWS_AT_FIRST, milliseconds: STEP_MS, stuck: 0 };

    /// For reverting everything at once, of a turn with few effects.
    #[must_use]
    pub fn whole(rows: i32) -> Self {
        Self { rows, milliseconds: 60_000, stuck: 0 }
    }
}

/// Reverts the latest changes of a turn, except conflicts. The first step also reverts what the turn did in fights.
///
/// # Errors
/// Database errors.
pub async fn revert(tx: &TenantTx, turn: Uuid, pace: Pace, is_first: bool) -> Result<Reverted> {
    let fights = match is_first {
        true if pace.stuck >= CAREFUL_AFTER => encounters::rewind::leave(tx, turn).await?,
        true => encounters::rewind::rewind(tx, turn).await?,
        false => Vec::new(),
    };
    let rows = if pace.stuck >= ALONE_AFTER { pace.rows.min(1) } else { pace.rows };
    let row = sqlx::query("SELECT * FROM revert_turn_step($1, $2, $3, $4, $5)")
        .bind(turn)
        .bind(rows)
        .bind(pace.milliseconds)
        .bind(pace.stuck >= CAREFUL_AFTER)
        .bind(Value::Array(fights))
        .fetch_one(&mut *tx.connection().await)
        .await?;
    Ok(Reverted {
        conflicts: row.read("conflicts")?,
        total: i64::from(row.read::<i32>("total")?),
        gone: i64::from(row.read::<i32>("gone")?),
        is_done: row.read("is_done")?,
    })
}

/// The server that reverts a turn, and the actor for the journal.
pub struct Worker<'a> {
    pub pool: &'a Pool,
    pub actor: Actor,
    pub turn: Uuid,
    /// The server's number.
    pub instance: i64,
}

/// The result of working on a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The turn is reverted and has ended.
    Ended,
    /// There is more to do.
    More,
    /// A step failed. It will be retried later.
    PutOff,
    /// The turn is not this server's to revert, or no longer.
    Lost,
}

/// The turns that this server may revert: those it is working on, and those that nobody works on any more.
const MINE: &str = "tenant_id = $1 AND id = $2 AND (status IN ('queued', 'running') OR revert_as IS NOT NULL) \
    AND (revert_as IS NOT NULL AND instance = $3 OR turn_is_abandoned(lease_until, instance))";

impl<'a> Worker<'a> {
    /// Works as the server itself, after somebody else began.
    #[must_use]
    pub fn system(pool: &'a Pool, tenant: Uuid, turn: Uuid, instance: i64) -> Self {
        Self { pool, actor: Actor::system(tenant), turn, instance }
    }

    /// Reverts until everything is done or the time is up. Then others go on.
    pub async fn carry_on(&self, share: Duration) -> Came {
        let until = Instant::now() + share;
        let mut rows = ROWS_AT_FIRST;
        loop {
            let began = Instant::now();
            let came = self.step_or_put_off(rows).await;
            if came != Came::More {
                return came;
            }
            let took = began.elapsed();
            rows = if took > STEP_TARGET { (rows / 2).max(ROWS_MIN) } else { (rows * 3 / 2).min(ROWS_MAX) };
            if Instant::now() >= until {
                if let Err(error) = self.let_go().await {
                    tracing::warn!(turn_id = %self.turn, %error, "could not give up the lease on a turn that is being reverted; it must expire first");
                }
                return Came::More;
            }
            sleep(took.clamp(PAUSE_MIN, PAUSE_MAX)).await;
        }
    }

    /// One step. A failure is stored with the turn.
    pub async fn step_or_put_off(&self, rows: i32) -> Came {
        let error = match self.step(rows).await {
            Ok(came) => {
                metrics::REVERT_STEPS.with_label_values(&["done"]).inc();
                return came;
            }
            Err(error) => error,
        };
        metrics::REVERT_STEPS.with_label_values(&["failed"]).inc();
        tracing::warn!(turn_id = %self.turn, error = %error_for_operator(&error), "could not revert more of a turn; trying again later");
        if let Err(error) = self.put_off(&error).await {
            tracing::warn!(turn_id = %self.turn, %error, "could not store that reverting a turn failed");
        }
        Came::PutOff
    }

    /// One step. Its transaction takes over the turn if nobody works on it, and ends the turn if nothing is left.
    async fn step(&self, rows: i32) -> Result<Came> {
        let tx = TenantTx::write(self.pool, &self.actor.clone().in_turn(self.turn, Origin::Revert)).await?;
        let sql = format!(
            "SELECT on_failure, revert_as, revert_next, revert_stuck FROM turn WHERE {MINE} FOR NO KEY UPDATE SKIP LOCKED"
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(tx.tenant())
            .bind(self.turn)
            .bind(self.instance)
            .fetch_optional(&mut *tx.connection().await)
            .await?;
        let Some(row) = row else { return Ok(Came::Lost) };
        let became: Option<String> = row.read("revert_as")?;
        let stuck: i32 = row.read("revert_stuck")?;
        let is_first = row.read::<Option<i64>>("revert_next")?.is_none();
        let keeps = row.read::<&str>("on_failure")? == "keep" && became.as_deref() != Some("undone");
        let is_done = if keeps {
            true
        } else if stuck >= LEAVE_AFTER {
            if is_first {
                revert(&tx, self.turn, Pace { rows: 0, stuck, ..Pace::FIRST }, true).await?;
            }
            leave(&tx, self.turn, 1, "failed").await? == 0
        } else {
            revert(&tx, self.turn, Pace { rows, stuck, ..Pace::FIRST }, is_first).await?.is_done
        };
        sqlx::query(
            "UPDATE turn SET instance = $3, lease_until = now() + $4 * interval '1 second', revert_as = coalesce(revert_as, 'failed'), \
                    revert_since = coalesce(revert_since, now()), error = coalesce(error, CASE WHEN revert_as IS NULL THEN $5 END), \
                    revert_tries = 0, revert_try_at = NULL, revert_stuck = least(revert_stuck, $6), \
                    revert_total = CASE WHEN $7 THEN revert_total ELSE coalesce(revert_total, (SELECT count(*) FROM journal j \
                        WHERE j.tenant_id = $1 AND j.turn_id = $2 AND j.origin <> 'revert' AND j.seq > reverted_through)) END \
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tx.tenant())
        .bind(self.turn)
        .bind(self.instance)
        .bind(TURN_LEASE_SECONDS)
        .bind(stopped())
        .bind(CAREFUL_AFTER)
        .bind(is_done)
        .execute(&mut *tx.connection().await)
        .await?;
        if is_done {
            end(&tx, self.turn).await?;
        }
        tx.commit().await?;
        Ok(if is_done { Came::Ended } else { Came::More })
    }

    /// Stores why a step failed, and when it may be retried: after 2, 4, 8 … seconds, at most five minutes.
    async fn put_off(&self, error: &Error) -> Result<()> {
        let tx = TenantTx::write(self.pool, &self.actor).await?;
        let sql = format!(
            "UPDATE turn SET instance = $3, lease_until = now(), revert_as = coalesce(revert_as, 'failed'), \
                    revert_since = coalesce(revert_since, now()), error = coalesce(error, CASE WHEN revert_as IS NULL THEN $6 END), \
                    revert_tries = revert_tries + 1, revert_stuck = revert_stuck + $5, revert_error = $4, \
                    revert_try_at = now() + least(300, power(2, least(revert_tries + 1, 9))) * interval '1 second' WHERE {MINE}"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(tx.tenant())
            .bind(self.turn)
            .bind(self.instance)
            .bind(error_for_operator(error))
            .bind(i32::from(is_of_a_row(error)))
            .bind(stopped())
            .execute(&mut *tx.connection().await)
            .await?;
        tx.commit().await
    }

    /// Gives up the lease, so that others can go on.
    pub(super) async fn let_go(&self) -> Result<()> {
        let tx = TenantTx::write(self.pool, &self.actor).await?;
        sqlx::query(
            "UPDATE turn SET lease_until = now() WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND revert_as IS NOT NULL",
        )
        .bind(tx.tenant())
        .bind(self.turn)
        .bind(self.instance)
        .execute(&mut *tx.connection().await)
        .await?;
        tx.commit().await
    }
}

/// Leaves the next changes of a turn as they are, and adds them to its conflicts. Returns how many.
///
/// # Errors
/// Database errors.
pub(super) async fn leave(tx: &TenantTx, turn: Uuid, rows_max: i32, why: &str) -> Result<i32> {
    let row = sqlx::query("SELECT revert_turn_leave($1, $2, $3) AS many")
        .bind(turn)
        .bind(rows_max)
        .bind(why)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    row.read("many")
}

/// Ends the revert of a turn that the transaction has locked.
///
/// # Errors
/// Database errors.
pub(super) async fn end(tx: &TenantTx, turn: Uuid) -> Result<()> {
    sqlx::query("SELECT revert_turn_end($1)").bind(turn).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// The error of an orphaned turn.
pub(super) fn stopped() -> Value {
    json!({ "code": "internal", "message": "The server that ran this turn stopped." })
}

/// An error as an operator reads it.
fn error_for_operator(error: &Error) -> String {
    let text = error.cause().map_or_else(|| error.to_string(), ToString::to_string);
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// Whether a failure is caused by a row of the turn, and not by something else at the moment.
pub(super) fn is_of_a_row(error: &Error) -> bool {
    error.code != Code::Unavailable && !error.is_transient() || error.sqlstate().as_deref() == Some("57014")
}
