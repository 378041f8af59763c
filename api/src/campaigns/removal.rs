//! Deleting a campaign of any size. It leaves in the request: nobody finds it from then on, its names are free, its turns stop, and
//! who follows it is told so. Its rows go afterwards, a step at a time, by whichever server comes to it first.
//!
//! A step is a transaction of a fraction of a second, deletes children before their parents (`campaign_remove`, in `sql/removal.sql`,
//! reads the order from the foreign keys, so a new table needs nothing here) and writes how far it is: a server may die at any moment.
//! One campaign that cannot be deleted waits longer and longer, and no other one waits for it. Never delete a campaign's row elsewhere.

use std::time::Duration;

use sqlx::postgres::PgRow;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::{error::Result, ops::metrics, pool::Pool, stored::Columns, tenancy::TenantTx};

/// What is looked at in one round.
const CAMPAIGNS_AT_ONCE: i32 = 100;
/// How long one step deletes, in milliseconds, and how long one campaign is carried on before the next.
const STEP_MILLIS: i32 = 250;
const SHARE: Duration = Duration::from_secs(5);

/// A campaign leaves when the transaction is committed. Its turns that are asked to stop.
///
/// # Errors
/// Those of the database.
pub async fn leave(tx: &TenantTx, campaign: Uuid) -> Result<Vec<Uuid>> {
    let rows =
        sqlx::query("SELECT campaign_leave($1) AS turn").bind(campaign).fetch_all(&mut *tx.connection().await).await?;
    rows.iter().map(|row| row.read("turn")).collect()
}

/// Goes on with the campaigns whose rows are to go. One that fails is tried again later, the others now.
///
/// # Errors
/// If it cannot be asked which there are.
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
                tracing::warn!(campaign_id = %campaign, %error, "the rows of a deleted campaign could not be deleted; it is tried again");
                // An error that is none of the database's own is a lost connection.
                note_failure(pool, tenant, campaign, error.sqlstate().as_deref().unwrap_or("08006")).await?;
            }
        }
    }
    Ok(())
}

/// Deletes rows of one campaign until none is left or its share of time is over; between two steps the database has time for others.
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
        // Another server is at it, or has done it.
        let Some(step) = step else { return Ok(()) };
        metrics::CAMPAIGN_ROWS_REMOVED.inc_by(step.read::<i64>("gone")?.unsigned_abs());
        if step.read("is_done")? {
            tracing::info!(campaign_id = %campaign, "the last of a deleted campaign is gone");
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
