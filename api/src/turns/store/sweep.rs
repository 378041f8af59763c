//! Turns that nobody works on any more: their server died, or taking them back failed before. Each is taken back by itself, so that
//! one that cannot be is in nobody's way.

use std::time::Duration;

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::revert::{Came, ROWS_AT_FIRST, Worker};
use crate::{
    error::{Code, Error, Result},
    ops::metrics,
    pool::Pool,
    stored::Columns,
    tenancy::TenantTx,
    turns::Running,
};

/// Turns of one round, and how long each is worked on before the next.
const ORPHANS_AT_ONCE: i32 = 50;
const SHARE: Duration = Duration::from_secs(1);

/// What a round came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Turns that have ended.
    pub ended: usize,
    /// There is more to do at once.
    pub more: bool,
}

/// Takes back turns that nobody works on any more, as far as that goes in a round; none while this server may not judge of others.
///
/// # Errors
/// Those of the database while it looks for them; what goes wrong with one of them is noted with that one.
pub async fn sweep(pool: &Pool, running: &Running) -> Result<Swept> {
    let orphans = sqlx::query("SELECT tenant_id, turn_id FROM orphaned_turns($1)")
        .bind(ORPHANS_AT_ONCE)
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    // Asked after the answer, too: it may have come from a database that stood still for a while.
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
    // There are others, now that some are out of their way.
    swept.more |= swept.ended > 0 && orphans.len() >= usize::try_from(ORPHANS_AT_ONCE).unwrap_or(usize::MAX);
    Ok(swept)
}

/// Looks at what stands in the way of a turn that was refused, and if nobody works on that any more, takes it back as far as one step
/// goes. Whether the way is free. What goes wrong is noted, and the way is not free.
pub async fn freed(pool: &Pool, running: &Running, tenant: Uuid, refused: &Error) -> bool {
    match blocking(pool, tenant, refused).await {
        Ok(Some(turn)) if running.steady.may_judge() => {
            let worker = Worker::system(pool, tenant, turn, running.instance);
            let came = worker.step_or_put_off(ROWS_AT_FIRST).await;
            match came {
                Came::Ended => ended(turn),
                // The sweeper goes on; else that would wait for the lease to run out.
                Came::More => drop(worker.let_go().await),
                Came::PutOff | Came::Lost => {}
            }
            came == Came::Ended
        }
        Ok(_) => false,
        Err(error) => {
            tracing::warn!(%error, "what stands in a turn's way could not be looked at");
            false
        }
    }
}

/// The turn that stands in the way, if nobody works on it and it may be tried now. One statement.
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
