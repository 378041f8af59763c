//! The limits as they live in one process.

use std::{
    collections::HashMap,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};
use uuid::Uuid;

use super::{Class, Rate};
use crate::error::{Code, Error, Result};

type Limiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// Failed sign-ins a minute from one address.
const FAILURES_PER_MINUTE: u32 = 300;
/// Limiters kept; beyond it all are forgotten, which forgives at most one minute.
const LIMITERS_MAX: usize = 100_000;

struct Entry {
    quota: u32,
    limiter: Limiter,
}

#[derive(Default)]
pub(super) struct Local {
    tenants: RwLock<HashMap<(Uuid, Class), Arc<Entry>>>,
    players: RwLock<HashMap<(Uuid, Uuid), Arc<Entry>>>,
    failures: RwLock<HashMap<IpAddr, Arc<Entry>>>,
    clock: DefaultClock,
}

impl Local {
    pub(super) fn check(&self, tenant: Uuid, class: Class, policy: &'static str, quota: u32) -> Rate {
        self.count(&self.tenants, (tenant, class), policy, quota)
    }

    pub(super) fn check_player(&self, tenant: Uuid, player: Uuid, quota: u32) -> Rate {
        self.count(&self.players, (tenant, player), "planner", quota)
    }

    pub(super) fn check_failure(&self, peer: IpAddr) -> Rate {
        self.count(&self.failures, peer, "failed-sign-ins", FAILURES_PER_MINUTE)
    }

    fn count<K: std::hash::Hash + Eq>(
        &self,
        map: &RwLock<HashMap<K, Arc<Entry>>>,
        key: K,
        policy: &'static str,
        quota: u32,
    ) -> Rate {
        let Some(per_minute) = NonZeroU32::new(quota) else { return Rate::unlimited(policy) };
        let known = map.read().unwrap_or_else(PoisonError::into_inner).get(&key).filter(|e| e.quota == quota).cloned();
        let entry = known.unwrap_or_else(|| {
            let limiter =
                RateLimiter::direct(Quota::per_minute(per_minute)).with_middleware::<StateInformationMiddleware>();
            let entry = Arc::new(Entry { quota, limiter });
            let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
            if map.len() >= LIMITERS_MAX {
                map.clear();
            }
            map.insert(key, entry.clone());
            entry
        });
        let (remaining, retry_after_seconds) = match entry.limiter.check() {
            Ok(state) => (u64::from(state.remaining_burst_capacity()), None),
            Err(refusal) => {
                let wait = refusal.wait_time_from(self.clock.now());
                (0, Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)))
            }
        };
        let quota = u64::from(quota);
        Rate {
            policy,
            quota,
            remaining,
            reset_seconds: ((quota - remaining) * 60).div_ceil(quota),
            retry_after_seconds,
        }
    }
}

/// Places per tenant: turns under way, listeners.
#[derive(Default)]
pub struct Permits(Mutex<HashMap<Uuid, Arc<AtomicU32>>>);

/// Holds one of a tenant's places until dropped.
pub struct Permit(Arc<AtomicU32>);

impl Permits {
    /// Takes a place; `places` 0 is unlimited.
    ///
    /// # Errors
    /// `rate_limited` when all places are taken.
    pub fn take(&self, tenant: Uuid, places: u32) -> Result<Permit> {
        let running = {
            let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tenants.retain(|_, running| Arc::strong_count(running) > 1);
            tenants.entry(tenant).or_default().clone()
        };
        let before = running.fetch_add(1, Ordering::AcqRel);
        let permit = Permit(running);
        if places > 0 && before >= places {
            return Err(
                Error::new(Code::RateLimited, format!("{places} of these are under way already.")).retry_after(1)
            );
        }
        Ok(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
