//! Shares of something, one for each key, such as a tenant's share of the connections.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Semaphore;
use uuid::Uuid;

/// Shares that nobody uses are forgotten when there are this many.
const SHARES_MAX: usize = 1000;

/// A share of `each` permits for every key.
pub struct Shares {
    each: usize,
    held: Mutex<HashMap<Uuid, Arc<Semaphore>>>,
}

impl Shares {
    /// Makes shares of `each` permits, and of at least one.
    #[must_use]
    pub fn new(each: usize) -> Self {
        Self { each: each.clamp(1, Semaphore::MAX_PERMITS), held: Mutex::default() }
    }

    /// How many permits a share has.
    #[must_use]
    pub fn each(&self) -> usize {
        self.each
    }

    /// The share of a key.
    #[must_use]
    pub fn of(&self, key: Uuid) -> Arc<Semaphore> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = held.get(&key) {
            return share.clone();
        }
        if held.len() >= SHARES_MAX {
            // Each permit holds its share.
            held.retain(|_, share| Arc::strong_count(share) > 1);
        }
        held.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}
