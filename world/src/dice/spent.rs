//! Spends counters whose dice were computed, even if their roll was not kept.
//!
//! Computing dice can reveal something even if nothing is stored, such as whether and where a formula failed. So a counter never
//! goes back. [`Looked`] holds counters until a transaction commits them. If it is dropped before, a separate statement raises
//! the counter. No answer leaves this server before that is written ([`Hold`]), and no other roll on this server gets these
//! counters in the meantime ([`floor`]). Committed counters need no extra work.
//!
//! A new way to take counters must end in a [`Looked`], and only the commit of the rolls may call [`Looked::settle`].

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::Handle;
use uuid::Uuid;

use base::{error::Result, metrics};
use db::{
    pool::Pool,
    retry::{Tries, UNASKED},
    tenancy::{self, Actor, Fate},
};
use edge::http::held::Hold;

const SPEND: &str = "SELECT spend_dice($1, $2, $3, $4)";

/// Seeds whose counters are being raised: the target, and the number of writes in progress.
static PENDING: LazyLock<Mutex<HashMap<Uuid, (i64, usize)>>> = LazyLock::new(Mutex::default);

fn pending() -> MutexGuard<'static, HashMap<Uuid, (i64, usize)>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters of a seed, up to `last`, whose dice were computed but not yet stored.
pub struct Looked {
    pool: Pool,
    tenant: Uuid,
    seed: Uuid,
    pub(super) last: i64,
    settled: bool,
}

impl Looked {
    pub(super) fn new(pool: &Pool, tenant: Uuid, seed: Uuid, last: i64) -> Self {
        Self { pool: pool.clone(), tenant, seed, last, settled: false }
    }

    /// Marks the counters as committed, or as not used after all.
    pub fn settle(mut self) {
        self.settled = true;
    }
}

impl Fate for Looked {
    fn committed(self: Box<Self>) {
        self.settle();
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (seed, last) = (self.seed, self.last);
        {
            let mut pending = pending();
            let entry = pending.entry(seed).or_insert((last, 0));
            *entry = (entry.0.max(last), entry.1 + 1);
        }
        runtime.spawn(spend(Spending { seed, _answers: Hold::answers() }, self.pool.clone(), self.tenant, last));
    }
}

/// Marks a seed's counter as being raised, until this is dropped.
struct Spending {
    seed: Uuid,
    /// Dropped after the seed is no longer pending.
    _answers: Hold,
}

impl Drop for Spending {
    fn drop(&mut self) {
        let mut pending = pending();
        if let Some(entry) = pending.get_mut(&self.seed) {
            entry.1 = entry.1.saturating_sub(1);
            if entry.1 == 0 {
                pending.remove(&self.seed);
            }
        }
    }
}

async fn spend(spending: Spending, pool: Pool, tenant: Uuid, last: i64) {
    let seed = spending.seed;
    let mut tries = Tries::with(UNASKED);
    loop {
        match write(&pool, tenant, seed, last).await {
            Ok(()) => return metrics::DICE_SPENT.inc(),
            Err(error) if tries.wait_to_retry(&error).await => {}
            Err(error) => {
                let cause = error.cause().map(ToString::to_string);
                tracing::error!(%seed, last, cause, "could not spend counters whose dice were computed; rotate this seed");
                return;
            }
        }
    }
}

/// Raises the counter. Every error is retried, because doing this twice does no harm and the dice must not be computed
/// again.
async fn write(pool: &Pool, tenant: Uuid, seed: Uuid, last: i64) -> Result<()> {
    let written = tenancy::call(pool, &Actor::system(tenant), SPEND, |q| q.bind(seed).bind(last)).await;
    written.map(drop).map_err(|error| {
        tracing::warn!(%seed, last, cause = error.cause().map(ToString::to_string), "cannot spend counters yet; will retry");
        error.settled().will_pass()
    })
}

/// The last counter of this seed whose dice were computed but that the database does not know of yet.
pub(super) fn floor(seed: Uuid) -> Option<i64> {
    pending().get(&seed).map(|entry| entry.0)
}
