//! Things that somebody in this process waits for, each with the last that is known of it. Whoever learns more tells it here; whoever
//! waits is woken only if it is something else than before. It never asks the database: one task does, for all that is watched.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

/// Watched things by key.
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

    /// Waits for news of something; what is known now is none.
    pub fn watch(&self, key: K) -> watch::Receiver<V> {
        let watching = self.things().entry(key).or_insert_with(|| watch::channel(V::default()).0).subscribe();
        self.more.notify_one();
        watching
    }

    /// What somebody waits for.
    pub fn keys(&self) -> Vec<K> {
        let mut things = self.things();
        things.retain(|_, sender| sender.receiver_count() > 0);
        things.keys().copied().collect()
    }

    /// How many wait for something of which `wanted` says so.
    pub fn count(&self, wanted: impl Fn(&K) -> bool) -> usize {
        self.things().iter().filter(|(key, _)| wanted(key)).map(|(_, sender)| sender.receiver_count()).sum()
    }

    /// Tells who waits for something what is known of it now.
    pub fn tell(&self, key: &K, now: V) {
        if let Some(sender) = self.things().get(key) {
            sender.send_if_modified(|known| std::mem::replace(known, now) != *known);
        }
    }

    /// Wakes who waits for something, whatever is known of it.
    pub fn wake(&self, key: &K) {
        if let Some(sender) = self.things().get(key) {
            sender.send_modify(|_| ());
        }
    }

    /// Waits until somebody begins to wait for something.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    /// Whoever waits learns that nothing more will be told.
    pub fn close(&self) {
        self.things().clear();
    }
}
