//! A circuit breaker per endpoint, model and key. After several failed calls in a row, the server stops calling the endpoint for a
//! while. Then one call at a time probes it.
//!
//! Model and key are part of the identity, so that one tenant's failing calls never block an endpoint for another tenant. Only
//! endpoints whose last call failed are kept, at most [`TRACKED_MAX`]. Beyond that, the endpoint that failed longest ago is
//! forgotten, so that one tenant's broken endpoints cannot hide another's.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::endpoint::Endpoint;
use super::error::{LlmError, UnavailableKind};

/// The most failing endpoints remembered at once.
pub const TRACKED_MAX: usize = 4_096;

/// How long callers should wait while another call probes the endpoint.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The state of one breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are allowed. Some may have failed.
    Closed,
    /// Calls are rejected.
    Open,
    /// The wait is over. The next call, or one in progress, is a probe.
    HalfOpen,
}

/// An endpoint whose last call failed.
#[derive(Debug, Clone)]
pub struct BreakerSnapshot {
    /// Host and port. Tenants set these, so they must not become a metric's label.
    pub host: String,
    /// The present state.
    pub state: BreakerState,
    /// How many calls failed in a row.
    pub failures: u32,
}

/// How many endpoints are in which state. Working endpoints are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BreakerCounts {
    /// Failing, but still called.
    pub failing: usize,
    /// Rejecting calls.
    pub open: usize,
    /// Waiting for, or running, a probe.
    pub half_open: usize,
}

#[derive(Debug, Default)]
struct Circuit {
    host: String,
    failures: u32,
    /// When the last call failed.
    failed_at: Option<Instant>,
    open_until: Option<Instant>,
    probing: bool,
}

impl Circuit {
    fn state(&self, now: Instant) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }
}

/// All breakers of one client.
#[derive(Debug)]
pub(super) struct Breakers {
    failures_max: u32,
    open_for: Duration,
    hasher: RandomState,
    entries: Mutex<HashMap<u64, Circuit>>,
}

impl Breakers {
    /// With a `failures_max` of 0 the breakers never open.
    pub(super) fn new(failures_max: u32, open_for: Duration) -> Self {
        Self { failures_max, open_for, hasher: RandomState::new(), entries: Mutex::default() }
    }

    /// Permission to call, or how long to wait.
    ///
    /// # Errors
    /// [`LlmError::BreakerOpen`] while the breaker is open or another call probes the endpoint.
    pub(super) fn enter(self: &Arc<Self>, endpoint: &Endpoint) -> Result<Permit, LlmError> {
        let secret = endpoint.api_key.as_ref().map(|key| key.expose());
        let caller = endpoint.options.caller.as_str();
        let key = self.hasher.hash_one((endpoint.base_url.as_str(), endpoint.model.as_str(), secret, caller));
        let mut probe = false;
        if let Some(entry) = self.lock().get_mut(&key)
            && let Some(until) = entry.open_until
        {
            let now = Instant::now();
            if now < until {
                return Err(LlmError::BreakerOpen { retry_after: until - now });
            }
            if entry.probing {
                return Err(LlmError::BreakerOpen { retry_after: PROBE_WAIT });
            }
            entry.probing = true;
            probe = true;
        }
        Ok(Permit { breakers: Arc::clone(self), key, probe, settled: false })
    }

    /// All endpoints whose last call failed.
    pub(super) fn snapshot(&self) -> Vec<BreakerSnapshot> {
        let now = Instant::now();
        self.lock()
            .values()
            .map(|entry| BreakerSnapshot {
                host: entry.host.clone(),
                state: entry.state(now),
                failures: entry.failures,
            })
            .collect()
    }

    fn record_failure(&self, key: u64, url: &Url, was_probe: bool) {
        if self.failures_max == 0 {
            return;
        }
        let mut entries = self.lock();
        if entries.len() >= TRACKED_MAX && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.failed_at).map(|(key, _)| *key);
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let now = Instant::now();
        let entry = entries.entry(key).or_insert_with(|| Circuit { host: host_and_port(url), ..Circuit::default() });
        entry.failures = entry.failures.saturating_add(1);
        entry.failed_at = Some(now);
        entry.probing &= !was_probe;
        // A call that began before the breaker opened may fail afterwards. It must not end a probe or prolong the wait.
        if entry.failures >= self.failures_max && !entry.probing && entry.state(now) != BreakerState::Open {
            entry.open_until = Some(now + self.open_for);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Circuit>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn host_and_port(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Counts states, for gauges with a fixed set of labels.
pub(super) fn count(snapshots: &[BreakerSnapshot]) -> BreakerCounts {
    let mut counts = BreakerCounts::default();
    for snapshot in snapshots {
        match snapshot.state {
            BreakerState::Closed => counts.failing += 1,
            BreakerState::Open => counts.open += 1,
            BreakerState::HalfOpen => counts.half_open += 1,
        }
    }
    counts
}

/// Permission for one call. If it is dropped without a result (a cancelled call), it only releases its place as a probe.
#[derive(Debug)]
pub(super) struct Permit {
    breakers: Arc<Breakers>,
    key: u64,
    probe: bool,
    settled: bool,
}

impl Permit {
    /// A probe gets a single attempt.
    pub(super) fn is_probe(&self) -> bool {
        self.probe
    }

    /// Reports the result of the call to the breaker.
    pub(super) fn settle<T>(mut self, url: &Url, outcome: &Result<T, LlmError>) {
        match verdict(outcome) {
            Some(true) => {
                self.settled = true;
                self.breakers.lock().remove(&self.key);
            }
            Some(false) => {
                self.settled = true;
                self.breakers.record_failure(self.key, url, self.probe);
            }
            None => {}
        }
    }

    fn release(&mut self) {
        if self.probe
            && !self.settled
            && let Some(entry) = self.breakers.lock().get_mut(&self.key)
        {
            entry.probing = false;
        }
        self.settled = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whether the endpoint works. None if the result says nothing about it.
fn verdict<T>(outcome: &Result<T, LlmError>) -> Option<bool> {
    match outcome {
        Ok(_) | Err(LlmError::Unavailable { kind: UnavailableKind::Rejected, .. }) => Some(true),
        Err(LlmError::Cancelled | LlmError::Refused(_) | LlmError::BreakerOpen { .. }) => None,
        Err(_) => Some(false),
    }
}
