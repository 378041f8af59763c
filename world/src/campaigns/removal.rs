//! Deletes campaigns of any size. The request only removes the campaign itself: from then on nobody finds it, its names
//! are free, its turns stop, and its followers are told. Its rows are deleted afterwards, step by step, by whichever
//! server comes first.
//!
//! A step is a transaction of a fraction of a second. It deletes children before their parents (`campaign_remove` in
//! `sql/removal.sql` reads the order from the foreign keys, so a new table needs no change here) and records its
//! progress, because a server may stop at any moment. A campaign that cannot be deleted is retried after longer and
//! longer waits, and does not hold up others. Never delete a campaign's row anywhere else.

use std::time::Duration;

use sqlx::postgres::PgRow;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use base::{error::Result, metrics, stored::Columns};
use db::{pool::Pool, tenancy::TenantTx};

/// The number of campaigns that are looked at in one round.
const CAMPAIGNS_AT_ONCE: i32 = 100;
/// How long one step deletes, in milliseconds, and how long we continue with one campaign before the next.
const STEP_MILLIS: i32 = 250;
const SHARE: Duration = Duration::from_secs(5);

/// Removes a campaign when the transaction is committed. Returns its turns that were asked to stop.
///
/// # Errors
/// Those of the database.
pub async fn leave(tx: &TenantTx, campaign: Uuid) -> Result<Vec<Uuid>> {
    let rows =
        sqlx::query("SELECT campaign_leave($1) AS turn").bind(campaign).fetch_all(&mut *tx.connection().await).await?;
    rows.iter().map(|row| row.read("turn")).collect()
}

/// Continues to delete the rows of removed campaigns. A campaign that fails is retried later; the others continue.
///
/// # Errors
/// If the list of campaigns cannot be read.
pub async fn carry_on(pool: &Pool) -> Result<()> {
    let waiting = sqlx::query("SELECT * FROM campaigns_leaving($1)")
        .bind(CAMPAIGNS_AT_ONCE)
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    let is_stuck = |row: &&PgRow| row.read::<i32>("attempts").is_ok_and(|attempts| attempts > 0);
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    metrics::CAMPAIGNS_LEAVING.set(count(waiting.len()));
    metrics::CAMPAIGNS_STUCK.set(count(waiting.iter().filter(is_stuck).count()));
    for row in &waiting {
        if row.read("is_due")? {
            let (tenant, campaign): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("campaign_id")?);
            if let Err(error) = remove(pool, tenant, campaign, SHARE).await {
                tracing::warn!(campaign_id = %campaign, %error, "the rows of a deleted campaign could not be deleted; the server will try again");
                // An error without SQLSTATE is a lost connection.
                note_failure(pool, tenant, campaign, error.sqlstate().as_deref().unwrap_or("08006")).await?;
            }
        }
    }
    Ok(())
}

/// Deletes rows of one campaign until none is left or its time is over. It pauses between steps so that the database
/// can do other work.
async fn remove(pool: &Pool, tenant: Uuid, campaign: Uuid, share: Duration) -> Result<()> {
    let until = Instant::now() + share;
    loop {
        let begun = Instant::now();
        let step = sqlx::query("SELECT gone, is_done FROM campaign_remove($1, $2, $3)")
            .bind(tenant)
            .bind(campaign)
            .bind(STEP_MILLIS)
            .fetch_optional(&mut *pool.acquire().await?)
            .await?;
        // Another server is working on it or has finished it.
        let Some(step) = step else { return Ok(()) };
        metrics::CAMPAIGN_ROWS_REMOVED.inc_by(step.read::<i64>("gone")?.unsigned_abs());
        if step.read("is_done")? {
            tracing::info!(campaign_id = %campaign, "the last rows of a deleted campaign were deleted");
            return Ok(());
        }
        if Instant::now() >= until {
            return Ok(());
        }
        sleep(begun.elapsed()).await;
    }
}

async fn note_failure(pool: &Pool, tenant: Uuid, campaign: Uuid, code: &str) -> Result<()> {
    sqlx::query("SELECT campaign_remove_failed($1, $2, $3)")
        .bind(tenant)
        .bind(campaign)
        .bind(code)
        .execute(&mut *pool.acquire().await?)
        .await?;
    Ok(())
}
