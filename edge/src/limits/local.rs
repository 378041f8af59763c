//! The limits within one process.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use governor::{
    InsufficientCapacity, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed, StateStore},
};
use uuid::Uuid;

use super::class::Class;
use crate::client::household;
use base::error::{Code, Error, Result};
use base::rate::Rate;

type Limiter = RateLimiter<NotKeyed, Count, DefaultClock, StateInformationMiddleware>;

/// Failed sign-ins per minute from one address.
const FAILURES_PER_MINUTE: u32 = 300;
/// The largest number of limiters. When it is reached all are forgotten, which forgives at most one minute.
const LIMITERS_MAX: usize = 100_000;

/// The counter of a limiter. It is shared so that a call can be given back.
#[derive(Clone, Debug, Default)]
struct Count(Arc<InMemoryState>);

impl StateStore for Count {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, key: &NotKeyed, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

#[derive(Debug)]
struct Meter {
    quota: u32,
    count: Count,
    /// The time after which one call is forgotten.
    interval: Nanos,
    limiter: Limiter,
}

impl Meter {
    fn new(quota: u32, rule: Quota) -> Self {
        let count = Count::default();
        let limiter = RateLimiter::new(rule, count.clone(), DefaultClock::default());
        Self { quota, count, interval: rule.replenish_interval().into(), limiter }
    }

    /// Gives one call back, as if it had not been counted.
    fn give_back(&self) {
        let Ok(()) = self.count.measure_and_replace::<_, _, Infallible>(&NotKeyed::NonKey, |full_at| {
            Ok(((), full_at.unwrap_or_default().saturating_sub(self.interval)))
        });
    }
}

/// A counted call. It was counted in advance, so that no more than allowed begin at the same time. If it is dropped
/// without [`Counted::keep`], it came to nothing and is given back.
#[derive(Debug)]
#[must_use]
pub struct Counted {
    /// None if there is no limit.
    entry: Option<Arc<Meter>>,
    kept: AtomicBool,
}

impl Counted {
    /// The call began, so it stays counted.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take().filter(|_| !*self.kept.get_mut()) {
            entry.give_back();
        }
    }
}

#[derive(Default)]
pub(super) struct Local {
    tenants: RwLock<HashMap<(Uuid, Class), Arc<Meter>>>,
    players: RwLock<HashMap<(Uuid, Uuid), Arc<Meter>>>,
    failures: RwLock<HashMap<IpAddr, Arc<Meter>>>,
    clock: DefaultClock,
}

impl Local {
    pub(super) fn check(&self, tenant: Uuid, class: Class, policy: &'static str, quota: u32) -> Rate {
        self.count(&self.tenants, (tenant, class), policy, quota).0
    }

    /// Counts `many` calls at once. More than the whole limit count as one less than it, so that they can be made at all.
    pub(super) fn check_many(&self, tenant: Uuid, class: Class, policy: &'static str, quota: u32, many: u32) -> Rate {
        match (NonZeroU32::new(quota), NonZeroU32::new(many.min(quota.saturating_sub(1)))) {
            (Some(per_minute), Some(many)) => {
                self.count_in(&self.tenants, (tenant, class), policy, (quota, Quota::per_minute(per_minute)), many).0
            }
            _ => Rate::unlimited(policy),
        }
    }

    pub(super) fn take(&self, tenant: Uuid, class: Class, policy: &'static str, quota: u32) -> Result<Counted> {
        counted(self.count(&self.tenants, (tenant, class), policy, quota), policy)
    }

    pub(super) fn take_of_player(&self, tenant: Uuid, player: Uuid, quota: u32) -> Result<Counted> {
        counted(self.count(&self.players, (tenant, player), "planner", quota), "planned texts")
    }

    pub(super) fn check_failure(&self, peer: IpAddr) -> Rate {
        self.count(&self.failures, household(peer), "failed-sign-ins", FAILURES_PER_MINUTE).0
    }

    fn count<K: std::hash::Hash + Eq>(
        &self,
        map: &RwLock<HashMap<K, Arc<Meter>>>,
        key: K,
        policy: &'static str,
        quota: u32,
    ) -> (Rate, Option<Arc<Meter>>) {
        match NonZeroU32::new(quota) {
            Some(per_minute) => {
                self.count_in(map, key, policy, (quota, Quota::per_minute(per_minute)), NonZeroU32::MIN)
            }
            None => (Rate::unlimited(policy), None),
        }
    }

    /// The caller's position, and the limiter that counted or rejected the call.
    fn count_in<K: std::hash::Hash + Eq>(
        &self,
        map: &RwLock<HashMap<K, Arc<Meter>>>,
        key: K,
        policy: &'static str,
        (quota, rule): (u32, Quota),
        many: NonZeroU32,
    ) -> (Rate, Option<Arc<Meter>>) {
        let known = map.read().unwrap_or_else(PoisonError::into_inner).get(&key).filter(|e| e.quota == quota).cloned();
        let entry = known.unwrap_or_else(|| {
            let entry = Arc::new(Meter::new(quota, rule));
            let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
            if map.len() >= LIMITERS_MAX {
                map.clear();
            }
            map.insert(key, entry.clone());
            entry
        });
        let (remaining, retry_after_seconds) = match entry.limiter.check_n(many) {
            Ok(Ok(state)) => (u64::from(state.remaining_burst_capacity()), None),
            Err(InsufficientCapacity(_)) => (0, Some(60)),
            Ok(Err(refusal)) => {
                let wait = refusal.wait_time_from(self.clock.now());
                (0, Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)))
            }
        };
        let quota = u64::from(quota);
        let rate = Rate {
            policy,
            quota,
            window_seconds: Some(60),
            remaining,
            reset_seconds: ((quota - remaining) * 60).div_ceil(quota),
            retry_after_seconds,
        };
        (rate, Some(entry))
    }
}

/// A counted call, unless its limit rejects it.
fn counted((rate, entry): (Rate, Option<Arc<Meter>>), what: &str) -> Result<Counted> {
    rate.allowed(what)?;
    Ok(Counted { entry, kept: AtomicBool::new(false) })
}

/// Places per tenant, for concurrent turns and listeners.
#[derive(Default)]
pub struct Permits(Mutex<HashMap<Uuid, Arc<AtomicU32>>>);

/// Holds one of a tenant's places until dropped.
pub struct Permit(Arc<AtomicU32>);

impl Permits {
    /// Takes a place. 0 `places` means no limit. `policy` is the limit's name in headers.
    ///
    /// # Errors
    /// `rate_limited` when all places are taken.
    pub fn take(&self, tenant: Uuid, places: u32, policy: &'static str) -> Result<Permit> {
        let running = {
            let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tenants.retain(|_, running| Arc::strong_count(running) > 1);
            tenants.entry(tenant).or_default().clone()
        };
        let before = running.fetch_add(1, Ordering::AcqRel);
        let permit = Permit(running);
        if places > 0 && before >= places {
            let rate = Rate {
                policy,
                quota: places.into(),
                window_seconds: None,
                remaining: 0,
                reset_seconds: 1,
                retry_after_seconds: Some(1),
            };
            let detail = format!("The limit of {places} at the same time is reached. Try again when one has ended.");
            return Err(Error::new(Code::RateLimited, detail).retry_after(1).by_limit(rate));
        }
        Ok(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
