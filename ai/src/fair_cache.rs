//! A bounded cache that is fair between tenants. When it is full, the tenant that uses the most memory loses its least recently
//! used entry. It does not check whether entries are current: they carry their version heads.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lru::LruCache;
use uuid::Uuid;

/// A value that may be cached.
pub trait Weigh {
    /// The number of bytes that it takes in memory.
    fn bytes(&self) -> usize;
}

struct Share<K, V> {
    entries: LruCache<K, Arc<V>>,
    bytes: usize,
}

struct State<K, V> {
    tenants: HashMap<Uuid, Share<K, V>>,
    bytes: usize,
}

/// Values by tenant and key.
pub struct FairCache<K, V> {
    bytes_max: usize,
    /// Larger values are not kept.
    value_bytes_max: usize,
    state: Mutex<State<K, V>>,
}

impl<K: Hash + Eq + Clone, V: Weigh> FairCache<K, V> {
    /// Creates an empty cache. A value may take a quarter of it.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { value_bytes_max: bytes_max / 4, ..Self::of_large(bytes_max) }
    }

    /// Creates an empty cache. A value may take all of it.
    #[must_use]
    pub fn of_large(bytes_max: usize) -> Self {
        Self { bytes_max, value_bytes_max: bytes_max, state: Mutex::new(State { tenants: HashMap::new(), bytes: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value for a key. It counts as used.
    pub fn get(&self, tenant: Uuid, key: &K) -> Option<Arc<V>> {
        self.state().tenants.get_mut(&tenant)?.entries.get(key).cloned()
    }

    /// Stores a value and evicts others if necessary.
    pub fn put(&self, tenant: Uuid, key: K, value: Arc<V>) {
        let bytes = value.bytes();
        if bytes > self.value_bytes_max {
            return;
        }
        let mut state = self.state();
        let share = state.tenants.entry(tenant).or_insert_with(|| Share { entries: LruCache::unbounded(), bytes: 0 });
        share.bytes += bytes;
        let replaced = share.entries.put(key, value).map_or(0, |old| old.bytes());
        share.bytes -= replaced;
        state.bytes = state.bytes + bytes - replaced;
        while state.bytes > self.bytes_max {
            if !state.evict_from_largest() {
                break;
            }
        }
    }

    /// Removes the values for which `stale` is true. Returns how many.
    pub fn forget(&self, tenant: Uuid, stale: impl Fn(&K, &V) -> bool) -> usize {
        let mut state = self.state();
        let Some(share) = state.tenants.get_mut(&tenant) else { return 0 };
        let keys: Vec<K> = share.entries.iter().filter(|(k, v)| stale(k, v)).map(|(k, _)| k.clone()).collect();
        let freed: usize = keys.iter().filter_map(|k| share.entries.pop(k)).map(|v| v.bytes()).sum();
        share.bytes -= freed;
        state.bytes -= freed;
        keys.len()
    }

    /// A tenant's values for which `wanted` is true. They do not count as used.
    pub fn select(&self, tenant: Uuid, wanted: impl Fn(&K, &V) -> bool) -> Vec<Arc<V>> {
        let state = self.state();
        let held = state.tenants.get(&tenant).into_iter().flat_map(|share| share.entries.iter());
        held.filter(|(k, v)| wanted(k, v)).map(|(_, v)| v.clone()).collect()
    }

    /// The number of bytes in the cache.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// All keys in the cache, by tenant.
    pub fn keys(&self) -> Vec<(Uuid, K)> {
        let state = self.state();
        state.tenants.iter().flat_map(|(t, share)| share.entries.iter().map(|(k, _)| (*t, k.clone()))).collect()
    }
}

impl<K: Hash + Eq, V: Weigh> State<K, V> {
    fn evict_from_largest(&mut self) -> bool {
        let Some((tenant, share)) = self.tenants.iter_mut().max_by_key(|(_, s)| s.bytes).map(|(t, s)| (*t, s)) else {
            return false;
        };
        let freed = share.entries.pop_lru().map(|(_, v)| v.bytes());
        share.bytes -= freed.unwrap_or(0);
        self.bytes -= freed.unwrap_or(0);
        if share.entries.is_empty() {
            self.tenants.remove(&tenant);
        }
        freed.is_some()
    }
}
