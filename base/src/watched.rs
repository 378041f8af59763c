//! Values that tasks in this process watch. Code that learns a new value tells it here, and watchers wake only if the value changed.
//! This module never asks the database; one task does that for everything that is watched.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

/// Watched values by key.
pub struct Watched<K, V> {
    things: Mutex<HashMap<K, watch::Sender<V>>>,
    more: Notify,
}

impl<K, V> Default for Watched<K, V> {
    fn default() -> Self {
        Self { things: Mutex::default(), more: Notify::new() }
    }
}

impl<K: Eq + Hash + Copy, V: Default + PartialEq> Watched<K, V> {
    fn things(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<V>>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a key. The value known now is not reported.
    pub fn watch(&self, key: K) -> watch::Receiver<V> {
        let watching = self.things().entry(key).or_insert_with(|| watch::channel(V::default()).0).subscribe();
        self.more.notify_one();
        watching
    }

    /// The keys that somebody watches.
    pub fn keys(&self) -> Vec<K> {
        let mut things = self.things();
        things.retain(|_, sender| sender.receiver_count() > 0);
        things.keys().copied().collect()
    }

    /// The number of watchers of all keys for which `wanted` is true.
    pub fn count(&self, wanted: impl Fn(&K) -> bool) -> usize {
        self.things().iter().filter(|(key, _)| wanted(key)).map(|(_, sender)| sender.receiver_count()).sum()
    }

    /// Sets a key's value and wakes its watchers if it changed.
    pub fn tell(&self, key: &K, now: V) {
        if let Some(sender) = self.things().get(key) {
            sender.send_if_modified(|known| std::mem::replace(known, now) != *known);
        }
    }

    /// Wakes a key's watchers even if its value did not change.
    pub fn wake(&self, key: &K) {
        if let Some(sender) = self.things().get(key) {
            sender.send_modify(|_| ());
        }
    }

    /// Waits until somebody begins to watch a key.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    /// Tells all watchers that nothing more will come.
    pub fn close(&self) {
        self.things().clear();
    }
}
