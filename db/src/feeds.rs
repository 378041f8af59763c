//! Streams that wait for changes of a campaign, and the one task that notifies them.
//!
//! The task asks the database once per interval for all watched campaigns together, however many streams wait.

use tokio::sync::watch;
use uuid::Uuid;

use crate::pool::Pool;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
    watched::Watched,
};

/// The most streams of one tenant on one server.
const STREAMS_PER_TENANT_MAX: usize = 1000;

/// A tenant and a campaign.
pub type Feed = (Uuid, Uuid);

/// The watched campaigns, with the last known end of each feed.
#[derive(Default)]
pub struct Feeds(Watched<Feed, i64>);

impl Feeds {
    /// Watches a campaign. The receiver gets the position where its feed ends.
    ///
    /// # Errors
    /// `rate_limited` if the tenant already has too many streams.
    pub fn watch(&self, feed: Feed) -> Result<watch::Receiver<i64>> {
        if self.0.count(|known| known.0 == feed.0) >= STREAMS_PER_TENANT_MAX {
            let detail = format!("A tenant may follow at most {STREAMS_PER_TENANT_MAX} feeds at once.");
            return Err(Error::new(Code::RateLimited, detail).retry_after(5));
        }
        Ok(self.0.watch(feed))
    }

    /// Ends every stream, for a shutdown.
    pub fn close(&self) {
        self.0.close();
    }

    /// Asks where the watched feeds end and notifies the streams. One statement, or none if nothing is watched.
    ///
    /// # Errors
    /// Database errors.
    pub async fn tell(&self, pool: &Pool) -> Result<()> {
        let feeds = self.0.keys();
        if feeds.is_empty() {
            return Ok(());
        }
        for (feed, end) in ends(pool, &feeds).await? {
            self.0.tell(&feed, end);
        }
        Ok(())
    }
}

/// Where feeds end. Feeds without a change are left out.
///
/// # Errors
/// Database errors.
pub async fn ends(pool: &Pool, feeds: &[Feed]) -> Result<Vec<(Feed, i64)>> {
    let rows = sqlx::query("SELECT tenant_id, campaign_id, seq FROM feed_positions($1, $2)")
        .bind(feeds.iter().map(|feed| feed.0).collect::<Vec<_>>())
        .bind(feeds.iter().map(|feed| feed.1).collect::<Vec<_>>())
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    rows.iter().map(|row| Ok(((row.read("tenant_id")?, row.read("campaign_id")?), row.read("seq")?))).collect()
}
