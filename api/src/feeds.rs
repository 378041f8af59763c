//! Who waits for changes of a campaign, and the one task that tells them.
//!
//! However many streams wait, the database is asked once a beat, for all their campaigns together.

use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    pool::Pool,
    stored::Columns,
    watched::Watched,
};

/// Streams of one tenant on one server.
const STREAMS_PER_TENANT_MAX: usize = 1000;

/// Tenant and campaign.
pub type Feed = (Uuid, Uuid);

/// The campaigns whose changes somebody waits for, with the last known end of each feed.
#[derive(Default)]
pub struct Feeds(Watched<Feed, i64>);

impl Feeds {
    /// Waits for changes of a campaign; what is received is where its feed ends.
    ///
    /// # Errors
    /// `rate_limited` when the tenant has too many streams already.
    pub fn watch(&self, feed: Feed) -> Result<watch::Receiver<i64>> {
        if self.0.count(|known| known.0 == feed.0) >= STREAMS_PER_TENANT_MAX {
            let detail = format!("A tenant may follow {STREAMS_PER_TENANT_MAX} feeds at once.");
            return Err(Error::new(Code::RateLimited, detail).retry_after(5));
        }
        Ok(self.0.watch(feed))
    }

    /// Ends every stream: nobody will be told anything any more.
    pub fn close(&self) {
        self.0.close();
    }

    /// Asks where the watched feeds end, and tells those who wait. One statement, none when nobody waits.
    ///
    /// # Errors
    /// Those of the database.
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

/// Where feeds end; those without a change are left out.
///
/// # Errors
/// Those of the database.
pub async fn ends(pool: &Pool, feeds: &[Feed]) -> Result<Vec<(Feed, i64)>> {
    let rows = sqlx::query("SELECT tenant_id, campaign_id, seq FROM feed_positions($1, $2)")
        .bind(feeds.iter().map(|feed| feed.0).collect::<Vec<_>>())
        .bind(feeds.iter().map(|feed| feed.1).collect::<Vec<_>>())
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    rows.iter().map(|row| Ok(((row.read("tenant_id")?, row.read("campaign_id")?), row.read("seq")?))).collect()
}
