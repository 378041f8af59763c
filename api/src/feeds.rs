//! Who waits for changes of a campaign, and the one task that tells them.
//!
//! However many streams wait, the database is asked once a beat, for all their campaigns together.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    pool::Pool,
    stored::Columns,
};

/// Streams of one tenant on one server.
const STREAMS_PER_TENANT_MAX: usize = 1000;

/// Tenant and campaign.
pub type Feed = (Uuid, Uuid);

/// The campaigns whose changes somebody waits for, with the last known end of each feed.
#[derive(Default)]
pub struct Feeds(Mutex<HashMap<Feed, watch::Sender<i64>>>);

impl Feeds {
    fn watched(&self) -> MutexGuard<'_, HashMap<Feed, watch::Sender<i64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for changes of a campaign; what is received is where its feed ends.
    ///
    /// # Errors
    /// `rate_limited` when the tenant has too many streams already.
    pub fn watch(&self, feed: Feed) -> Result<watch::Receiver<i64>> {
        let mut watched = self.watched();
        let own = watched.iter().filter(|(known, _)| known.0 == feed.0);
        if own.map(|(_, sender)| sender.receiver_count()).sum::<usize>() >= STREAMS_PER_TENANT_MAX {
            let detail = format!("A tenant may follow {STREAMS_PER_TENANT_MAX} feeds at once.");
            return Err(Error::new(Code::RateLimited, detail).retry_after(5));
        }
        Ok(watched.entry(feed).or_insert_with(|| watch::channel(0).0).subscribe())
    }

    /// Ends every stream: nobody will be told anything any more.
    pub fn close(&self) {
        self.watched().clear();
    }

    /// Asks where the watched feeds end, and tells those who wait. One statement, none when nobody waits.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn tell(&self, pool: &Pool) -> Result<()> {
        let feeds: Vec<Feed> = {
            let mut watched = self.watched();
            watched.retain(|_, sender| sender.receiver_count() > 0);
            watched.keys().copied().collect()
        };
        if feeds.is_empty() {
            return Ok(());
        }
        let ends = ends(pool, &feeds).await?;
        let watched = self.watched();
        for (feed, end) in ends {
            if let Some(sender) = watched.get(&feed) {
                sender.send_if_modified(|known| std::mem::replace(known, end) != end);
            }
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
