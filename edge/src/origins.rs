//! The origins that tenants allow, of all of them together: for answers that belong to no tenant, such as preflights and answers to
//! callers whom the server does not know.
//!
//! The list is in memory, so that every answer can use it, also while the database is busy or away. [`Origins::read`] makes it new:
//! a background task calls it, and whatever changes a tenant's list. A new list of another server is known after [`READ_EVERY`].

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use tokio::sync::Mutex;

use base::{error::Result, stored::Columns};
use db::pool::Pool;

/// How often the list is read.
pub const READ_EVERY: Duration = Duration::from_secs(5);

/// In a list of origins, it allows every origin.
const ALL: &str = "*";

/// The origins of all tenants.
#[derive(Default)]
pub struct Origins {
    list: RwLock<HashSet<String>>,
    /// One reader at a time, so that no older list takes the place of a newer one.
    reading: Mutex<()>,
}

impl Origins {
    /// Whether some tenant allows an origin.
    #[must_use]
    pub fn has(&self, origin: &str) -> bool {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.contains(origin) || list.contains(ALL)
    }

    /// Reads the list from the database.
    ///
    /// # Errors
    /// Database errors. The list stays as it was.
    pub async fn read(&self, pool: &Pool) -> Result<()> {
        let _alone = self.reading.lock().await;
        let rows = sqlx::query("SELECT * FROM all_origins() AS origin").fetch_all(&mut *pool.acquire().await?).await?;
        let list = rows.iter().map(|row| row.read("origin")).collect::<Result<_>>()?;
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
        Ok(())
    }
}

/// Whether a tenant's list of origins allows one.
#[must_use]
pub fn allows(list: &[String], origin: &str) -> bool {
    list.iter().any(|listed| listed == origin || listed == ALL)
}
