//! Counters that were looked at are spent, also when what was rolled with them came to nothing.
//!
//! Dice that are rolled tell something even if nothing of it stays: whether a formula failed, and where. So a counter never
//! goes back. [`Looked`] holds counters that a transaction has yet to keep; one that is dropped without having been kept has
//! the counter raised by a statement of its own. No answer leaves this server before that is written ([`written`]), and no other
//! roll of this server gets these counters meanwhile ([`floor`]). What is kept costs nothing here.
//!
//! To add a way to take counters: it ends in a [`Looked`], which only the commit of what was rolled may call kept.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, time};
use uuid::Uuid;

use crate::{
    error::Result,
    ops::metrics,
    pool::Pool,
    tenancy::{self, Actor, Fate},
};

/// How long an answer waits for counters to be written.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How often writing is tried, and how long after a failure.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

const SPEND: &str = "SELECT spend_dice($1, $2, $3, $4)";

/// Seeds whose counters are being raised: to where, and by how many at once.
static PENDING: LazyLock<Mutex<HashMap<Uuid, (i64, usize)>>> = LazyLock::new(Mutex::default);
static WRITTEN: Notify = Notify::const_new();

fn pending() -> MutexGuard<'static, HashMap<Uuid, (i64, usize)>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters of a seed that were looked at, up to `last`, until something keeps them.
pub struct Looked {
    pool: Pool,
    tenant: Uuid,
    seed: Uuid,
    pub(super) last: i64,
    kept: bool,
}

impl Looked {
    pub(super) fn new(pool: &Pool, tenant: Uuid, seed: Uuid, last: i64) -> Self {
        Self { pool: pool.clone(), tenant, seed, last, kept: false }
    }

    /// The stream has these counters behind it, or nobody looked after all.
    pub fn kept(mut self) {
        self.kept = true;
    }
}

impl Fate for Looked {
    fn committed(self: Box<Self>) {
        self.kept();
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (seed, last) = (self.seed, self.last);
        {
            let mut pending = pending();
            let entry = pending.entry(seed).or_insert((last, 0));
            *entry = (entry.0.max(last), entry.1 + 1);
        }
        runtime.spawn(spend(Spending(seed), self.pool.clone(), self.tenant, last));
    }
}

/// That a seed's counter is being raised.
struct Spending(Uuid);

impl Drop for Spending {
    fn drop(&mut self) {
        let mut pending = pending();
        if let Some(entry) = pending.get_mut(&self.0) {
            entry.1 = entry.1.saturating_sub(1);
            if entry.1 == 0 {
                pending.remove(&self.0);
            }
        }
        drop(pending);
        WRITTEN.notify_waiters();
    }
}

async fn spend(spending: Spending, pool: Pool, tenant: Uuid, last: i64) {
    let seed = spending.0;
    for _ in 0..ATTEMPTS {
        match write(&pool, tenant, seed, last).await {
            Ok(()) => {
                metrics::DICE_SPENT.inc();
                return;
            }
            Err(error) => {
                tracing::warn!(%seed, last, cause = error.cause().map(ToString::to_string), "counters are not spent yet")
            }
        }
        time::sleep(PAUSE).await;
    }
    tracing::error!(%seed, last, "counters that were looked at could not be spent; rotate this seed");
}

async fn write(pool: &Pool, tenant: Uuid, seed: Uuid, last: i64) -> Result<()> {
    tenancy::call(pool, &Actor::system(tenant), SPEND, |q| q.bind(seed).bind(last)).await.map(drop)
}

/// Up to which counter of this seed others have looked, as far as the database does not know yet.
pub(super) fn floor(seed: Uuid) -> Option<i64> {
    pending().get(&seed).map(|entry| entry.0)
}

/// Waits until everything that was looked at is written. At once if nothing is to be.
pub async fn written() {
    let all = async {
        loop {
            let notified = WRITTEN.notified();
            if pending().is_empty() {
                return;
            }
            notified.await;
        }
    };
    if time::timeout(WAIT_MAX, all).await.is_err() {
        tracing::error!("an answer did not wait any longer for counters to be spent");
    }
}
