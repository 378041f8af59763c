//! Taking a turn back in steps: each a transaction of well under a second, whose progress is on the turn's row.
//!
//! A turn whose effects fit one step is taken back in the transaction that ends it. Of a larger one the row says what becomes of it
//! (`revert_as`) and how far it is; until the last step it keeps its place and runs no tool. Whoever works on it holds a short lease, and any server
//! goes on when that is over. A step that fails is put off, longer each time; a row that fails again and again is set aside as a
//! conflict. Never take back anything outside of a step, which holds the turn's row: that is what keeps two servers from taking back twice.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::LEASE_SECONDS;
use crate::{
    encounters,
    error::{Code, Error, Result},
    ops::metrics,
    pool::Pool,
    stored::Columns,
    tenancy::{Actor, Origin, TenantTx},
};

/// Changes that the first step takes back, which is often the only one.
pub(super) const ROWS_AT_FIRST: i32 = 500;
/// The least and the most that a step takes back, which is as many as take about [`STEP_TARGET`].
const ROWS_MIN: i32 = 50;
const ROWS_MAX: i32 = 1000;
const STEP_TARGET: Duration = Duration::from_millis(150);
/// A step takes nothing more on after so many milliseconds.
const STEP_MS: i32 = 400;
/// Between two steps others have the database for as long as the step took, within these bounds.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// Failures that come from a row after which steps look at each row by itself, then at one row, and then leave that row as it is.
const CAREFUL_AFTER: i32 = 3;
const ALONE_AFTER: i32 = 5;
const LEAVE_AFTER: i32 = 7;
/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 500;

/// What came of taking a turn back, or a part of it.
pub struct Reverted {
    /// What stood in the way so far, as a list of at most a hundred.
    pub conflicts: Value,
    /// All of them.
    pub total: i64,
    /// New rows that somebody else had taken away already.
    pub gone: i64,
    /// Nothing is left to take back.
    pub is_done: bool,
}

/// How a step goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub rows: i32,
    pub milliseconds: i32,
    /// Failures so far that come from a row.
    stuck: i32,
}

impl Pace {
    /// For a step that begins.
    pub const FIRST: Self = Self { rows: ROWS_AT_FIRST, milliseconds: STEP_MS, stuck: 0 };

    /// Everything at once, of a turn with few effects.
    #[must_use]
    pub fn whole(rows: i32) -> Self {
        Self { rows, milliseconds: 60_000, stuck: 0 }
    }
}

/// Takes back what a turn changed last, except for what something stands in the way of. The first step also takes back what the turn did
/// in fights.
///
/// # Errors
/// Those of the database.
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

/// Who takes a turn back, and as whom that is told in the journal.
pub struct Worker<'a> {
    pub pool: &'a Pool,
    pub actor: Actor,
    pub turn: Uuid,
    /// The server's number.
    pub instance: i64,
}

/// What came of working on a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It is taken back, and has ended.
    Ended,
    /// There is more to do.
    More,
    /// A step failed; it is tried again later.
    PutOff,
    /// It is not, or no longer, this server's to take back.
    Lost,
}

/// What of a turn this server may take back: what it is at already, or what nobody is at any more.
const MINE: &str = "tenant_id = $1 AND id = $2 AND (status IN ('queued', 'running') OR revert_as IS NOT NULL) \
    AND (revert_as IS NOT NULL AND instance = $3 OR turn_is_abandoned(lease_until, instance))";

impl<'a> Worker<'a> {
    /// The server itself, after whoever began.
    #[must_use]
    pub fn system(pool: &'a Pool, tenant: Uuid, turn: Uuid, instance: i64) -> Self {
        Self { pool, actor: Actor::system(tenant), turn, instance }
    }

    /// Takes back until the end, or until the time is up: others go on then.
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
                    tracing::warn!(turn_id = %self.turn, %error, "a turn that is taken back waits for its lease");
                }
                return Came::More;
            }
            sleep(took.clamp(PAUSE_MIN, PAUSE_MAX)).await;
        }
    }

    /// One step; what goes wrong is noted with the turn.
    pub async fn step_or_put_off(&self, rows: i32) -> Came {
        let error = match self.step(rows).await {
            Ok(came) => {
                metrics::REVERT_STEPS.with_label_values(&["done"]).inc();
                return came;
            }
            Err(error) => error,
        };
        metrics::REVERT_STEPS.with_label_values(&["failed"]).inc();
        tracing::warn!(turn_id = %self.turn, error = %told(&error), "a turn could not be taken back further; it is tried again");
        if let Err(error) = self.put_off(&error).await {
            tracing::warn!(turn_id = %self.turn, %error, "that a turn could not be taken back is not noted");
        }
        Came::PutOff
    }

    /// One step. Its transaction takes the turn over if nobody is at it, and ends the turn if nothing is left.
    async fn step(&self, rows: i32) -> Result<Came> {
        let tx = TenantTx::write(self.pool, &self.actor.clone().in_turn(self.turn, Origin::Revert)).await?;
        let sql = format!(
            "SELECT on_failure, revert_as, revert_next, revert_stuck FROM turn WHERE {MINE} FOR UPDATE SKIP LOCKED"
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
        .bind(LEASE_SECONDS)
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

    /// Notes why a step failed, and lets the turn be until it may be tried again: after 2, 4, 8 … seconds, at most five minutes.
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
            .bind(told(error))
            .bind(i32::from(is_of_a_row(error)))
            .bind(stopped())
            .execute(&mut *tx.connection().await)
            .await?;
        tx.commit().await
    }

    /// Lets others go on.
    async fn let_go(&self) -> Result<()> {
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

/// Leaves the next changes of a turn as they are, and names them among its conflicts; how many.
///
/// # Errors
/// Those of the database.
pub(super) async fn leave(tx: &TenantTx, turn: Uuid, rows_max: i32, why: &str) -> Result<i32> {
    let row = sqlx::query("SELECT revert_turn_leave($1, $2, $3) AS many")
        .bind(turn)
        .bind(rows_max)
        .bind(why)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    row.read("many")
}

/// Ends the taking back of a turn that the transaction holds.
///
/// # Errors
/// Those of the database.
pub(super) async fn end(tx: &TenantTx, turn: Uuid) -> Result<()> {
    sqlx::query("SELECT revert_turn_end($1)").bind(turn).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// Why a turn failed whose server is gone.
fn stopped() -> Value {
    json!({ "code": "internal", "message": "The server that ran this turn stopped." })
}

/// An error as an operator is told it.
fn told(error: &Error) -> String {
    let text = error.cause().map_or_else(|| error.to_string(), ToString::to_string);
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// Whether a failure comes from what is taken back, and not from what else goes on at the moment.
fn is_of_a_row(error: &Error) -> bool {
    error.code != Code::Unavailable && !error.is_transient() || error.sqlstate().as_deref() == Some("57014")
}

/// A turn whose taking back an operator ended.
pub struct EndedNow {
    pub status: String,
    /// Changes that are left as they are.
    pub left: i64,
    /// The first hundred of them.
    pub conflicts: Value,
}

/// Ends the taking back of a turn, whoever works on it: of what is left it takes back what can be, unless it `keeps` that. None if the turn
/// is not being taken back, nor without a server.
///
/// # Errors
/// Those of the database that another moment may mend.
pub async fn end_now(
    pool: &Pool,
    (tenant, turn): (Uuid, Uuid),
    instance: i64,
    keeps: bool,
) -> Result<Option<EndedNow>> {
    let worker = Worker::system(pool, tenant, turn, instance);
    let mut rows = if keeps { i32::MAX } else { ROWS_AT_FIRST };
    let mut alone = keeps;
    loop {
        match worker.end_step(rows, keeps, alone).await {
            Ok(None) => return Ok(None),
            Ok(Some(Some(ended))) => return Ok(Some(ended)),
            Ok(Some(None)) => (rows, alone) = (ROWS_AT_FIRST, false),
            Err(error) if !is_of_a_row(&error) => return Err(error),
            // Down to the one row that cannot be taken back, which is left.
            Err(error) if rows <= 1 && alone => return Err(error),
            Err(_) if rows <= 1 => alone = true,
            Err(_) => rows = (rows / 8).max(1),
        }
    }
}

impl Worker<'_> {
    /// A step of [`end_now`]; with `leaves` it leaves rows instead of taking them back.
    async fn end_step(&self, rows: i32, keeps: bool, leaves: bool) -> Result<Option<Option<EndedNow>>> {
        let tx = TenantTx::write(self.pool, &self.actor.clone().in_turn(self.turn, Origin::Revert)).await?;
        let row = sqlx::query(
            "UPDATE turn SET instance = $3, lease_until = now() + $4 * interval '1 second', \
                    error = coalesce(error, CASE WHEN revert_as IS NULL THEN $5 END), revert_as = coalesce(revert_as, 'failed'), \
                    revert_since = coalesce(revert_since, now()) \
             WHERE tenant_id = $1 AND id = $2 AND (revert_as IS NOT NULL \
                 OR status IN ('queued', 'running') AND turn_is_abandoned(lease_until, instance)) RETURNING on_failure, revert_as, revert_next",
        )
        .bind(tx.tenant())
        .bind(self.turn)
        .bind(self.instance)
        .bind(LEASE_SECONDS)
        .bind(stopped())
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let is_first = row.read::<Option<i64>>("revert_next")?.is_none();
        let effects_stay = row.read::<&str>("on_failure")? == "keep" && row.read::<&str>("revert_as")? != "undone";
        let is_done = if effects_stay {
            true
        } else if leaves {
            if is_first {
                revert(&tx, self.turn, Pace { rows: 0, stuck: CAREFUL_AFTER, ..Pace::FIRST }, true).await?;
            }
            leave(&tx, self.turn, rows, "kept").await? < rows || keeps
        } else {
            revert(&tx, self.turn, Pace { rows, stuck: CAREFUL_AFTER, ..Pace::FIRST }, is_first).await?.is_done
        };
        if !is_done {
            tx.commit().await?;
            return Ok(Some(None));
        }
        end(&tx, self.turn).await?;
        let row = sqlx::query(
            "SELECT status, revert_conflicts_total, revert_conflicts FROM turn WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tx.tenant())
        .bind(self.turn)
        .fetch_one(&mut *tx.connection().await)
        .await?;
        let ended = EndedNow {
            status: row.read("status")?,
            left: i64::from(row.read::<i32>("revert_conflicts_total")?),
            conflicts: row.read::<Option<Value>>("revert_conflicts")?.unwrap_or_else(|| json!([])),
        };
        tx.commit().await?;
        Ok(Some(Some(ended)))
    }
}
