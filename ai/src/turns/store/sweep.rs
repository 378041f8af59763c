//! Turns that nobody works on any more: their server died, or reverting them failed before. Each is reverted by itself, so that a
//! turn that cannot be reverted does not block the others.

use std::time::Duration;

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::revert::{Came, ROWS_AT_FIRST, Worker};
use crate::turns::{running::Running, store::settle::settle};
use base::{
    error::{Code, Error, Result},
    metrics,
    stored::Columns,
};
use db::{
    pool::Pool,
    tenancy::{Actor, TenantTx},
};

/// The most turns per round, and how long to work on each.
const ORPHANS_AT_ONCE: i32 = 50;
const SHARE: Duration = Duration::from_secs(1);

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many turns have ended.
    pub ended: usize,
    /// Whether there is more to do at once.
    pub more: bool,
}

/// Reverts turns that nobody works on any more, as far as one round goes. None while this server may not declare others dead.
///
/// # Errors
/// Database errors of the search. An error with one turn is stored with that turn.
pub async fn sweep(pool: &Pool, running: &Running) -> Result<Swept> {
    let orphans = sqlx::query("SELECT tenant_id, turn_id FROM orphaned_turns($1)")
        .bind(ORPHANS_AT_ONCE)
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    // Checked after the answer as well, because the answer may come from a database that stalled for a while.
    if !running.steady.may_judge() {
        return Ok(Swept::default());
    }
    let ids = |row: &PgRow| -> Result<(Uuid, Uuid)> { Ok((row.read("tenant_id")?, row.read("turn_id")?)) };
    let mut swept = Swept::default();
    for row in &orphans {
        let (tenant, turn) = ids(row)?;
        match Worker::system(pool, tenant, turn, running.instance).carry_on(SHARE).await {
            Came::Ended => {
                swept.ended += 1;
                ended(turn);
            }
            Came::More => swept.more = true,
            Came::PutOff | Came::Lost => {}
        }
    }
    let waiting = sqlx::query("SELECT tenant_id, turn_id FROM turns_awaiting($1)")
        .bind(ORPHANS_AT_ONCE)
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    for row in &waiting {
        let (tenant, turn) = ids(row)?;
        if let Err(error) = settle(pool, &Actor::system(tenant), turn).await {
            tracing::warn!(turn_id = %turn, %error, "could not apply a turn again whose other attempt failed; trying again later");
        }
    }
    // There may be others, now that some are done.
    swept.more |= swept.ended > 0 && orphans.len() >= usize::try_from(ORPHANS_AT_ONCE).unwrap_or(usize::MAX);
    Ok(swept)
}

/// Looks for an orphaned turn that holds the place of a rejected turn, and reverts as much of it as one step can. Returns whether
/// the place is free. If that fails, the error is logged, and the place counts as taken.
pub async fn freed(pool: &Pool, running: &Running, tenant: Uuid, refused: &Error) -> bool {
    match blocking(pool, tenant, refused).await {
        Ok(Some(turn)) if running.steady.may_judge() => {
            let worker = Worker::system(pool, tenant, turn, running.instance);
            let came = worker.step_or_put_off(ROWS_AT_FIRST).await;
            match came {
                Came::Ended => ended(turn),
                // The sweeper goes on. Without this it would have to wait for the lease to expire.
                Came::More => drop(worker.let_go().await),
                Came::PutOff | Came::Lost => {}
            }
            came == Came::Ended
        }
        Ok(_) => false,
        Err(error) => {
            tracing::warn!(%error, "could not check which turn blocks another");
            false
        }
    }
}

/// The turn that holds the place, if nobody works on it and it may be tried now. One statement.
async fn blocking(pool: &Pool, tenant: Uuid, refused: &Error) -> Result<Option<Uuid>> {
    let place = match (refused.code, refused.turn_id, refused.place) {
        (Code::IdempotencyInFlight, Some(_), _) | (Code::TurnInProgress, _, Some(_)) => refused.place,
        _ => return Ok(None),
    };
    let tx = TenantTx::read(pool, tenant).await?;
    let row = sqlx::query(
        "SELECT id FROM turn WHERE tenant_id = $1 AND (status = 'running' OR status = 'queued') AND ($2::uuid IS NULL OR id = $2) \
           AND ($3::uuid IS NULL OR entity_id = $3 AND player_id IS NOT DISTINCT FROM $4 AND status = 'running' AND kind <> 'planner') \
           AND ($2 IS NOT NULL OR $3 IS NOT NULL) AND (revert_try_at IS NULL OR revert_try_at <= now()) \
           AND turn_is_abandoned(lease_until, instance) LIMIT 1",
    )
    .bind(tenant)
    .bind(refused.turn_id.filter(|_| place.is_none()))
    .bind(place.map(|(entity, _)| entity))
    .bind(place.and_then(|(_, player)| player))
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read("id")).transpose()
}

fn ended(turn: Uuid) {
    metrics::TURNS_SWEPT.inc();
    tracing::warn!(turn_id = %turn, "reverted a turn that nobody worked on any more");
}
