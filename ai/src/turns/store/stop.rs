//! Lets an operator end the revert of a turn: of the rest it reverts what it can, or nothing, and lists what it left.

use serde_json::{Value, json};
use uuid::Uuid;

use super::revert::{CAREFUL_AFTER, Pace, ROWS_AT_FIRST, Worker, end, is_of_a_row, leave, revert, stopped};
use base::{error::Result, stored::Columns};
use db::{
    pool::Pool,
    tenancy::{Origin, TURN_LEASE_SECONDS, TenantTx},
};

/// A turn whose revert an operator ended.
pub struct EndedNow {
    pub status: String,
    /// How many changes were left as they are.
    pub left: i64,
    /// The first hundred of them.
    pub conflicts: Value,
}

/// Ends the revert of a turn, whoever works on it. Of the rest it reverts what it can or, with `keeps`, nothing. None if the turn
/// is neither being reverted nor orphaned.
///
/// # Errors
/// Database errors that may be temporary.
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
            Ok(Step::NotHere) => return Ok(None),
            Ok(Step::Ended(ended)) => return Ok(Some(ended)),
            Ok(Step::More) => (rows, alone) = (ROWS_AT_FIRST, false),
            Err(error) if !is_of_a_row(&error) => return Err(error),
            // Narrows down to the one row that cannot be reverted, and leaves it.
            Err(error) if rows <= 1 && alone => return Err(error),
            Err(_) if rows <= 1 => alone = true,
            Err(_) => rows = (rows / 8).max(1),
        }
    }
}

/// The result of a step.
enum Step {
    /// The turn is not being reverted.
    NotHere,
    More,
    Ended(EndedNow),
}

impl Worker<'_> {
    /// A step of [`end_now`]. With `leaves` it leaves rows instead of reverting them.
    async fn end_step(&self, rows: i32, keeps: bool, leaves: bool) -> Result<Step> {
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
        .bind(TURN_LEASE_SECONDS)
        .bind(stopped())
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        let Some(row) = row else { return Ok(Step::NotHere) };
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
            return Ok(Step::More);
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
        Ok(Step::Ended(ended))
    }
}
