//! What is kept in memory for prompts.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    base_prompt::BasePrompt,
    key::{Alias, PromptKey},
    lore::ScopeLore,
    scope::LoreScope,
};
use crate::{
    corpora::Corpora,
    fair_cache::{FairCache, Weigh},
};

/// A campaign and a scope of its lore.
pub type LoreKey = (Uuid, LoreScope);

/// A scope's lore, with the version at which it was read.
pub struct StampedLore {
    pub version: i64,
    pub lore: Arc<ScopeLore>,
}

impl Weigh for StampedLore {
    fn bytes(&self) -> usize {
        self.lore.bytes()
    }
}

/// All caches for prompts.
pub struct Prompts {
    pub base: FairCache<PromptKey, BasePrompt>,
    pub lore: FairCache<LoreKey, StampedLore>,
    pub corpora: Corpora,
    aliases: moka::sync::Cache<Alias, PromptKey>,
}

impl Prompts {
    /// Creates caches of `bytes_max` bytes: three tenths each for prompts and for lore, four for memories.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let tenth = bytes_max / 10;
        Self {
            base: FairCache::new(tenth * 3),
            lore: FairCache::new(tenth * 3),
            corpora: FairCache::of_large(tenth * 4),
            aliases: moka::sync::Cache::builder().max_capacity(50_000).support_invalidation_closures().build(),
        }
    }

    /// The ids for a request's names, as of the last time. Only a hint: the version heads decide whether it is still valid.
    #[must_use]
    pub fn cached_key(&self, alias: &Alias) -> Option<PromptKey> {
        self.aliases.get(alias)
    }

    /// Remembers the ids for a request's names.
    pub fn learn(&self, alias: Alias, key: PromptKey) {
        self.aliases.insert(alias, key);
    }

    /// Forgets everything about a tenant.
    pub fn forget(&self, tenant: Uuid) {
        self.base.forget(tenant, |_, _| true);
        self.lore.forget(tenant, |_, _| true);
        self.corpora.forget(tenant, |_, _| true);
        // The cache was built for this, so it cannot fail.
        let _ = self.aliases.invalidate_entries_if(move |alias, _| alias.tenant == tenant);
    }

    /// The number of bytes in the caches.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.base.bytes() + self.lore.bytes() + self.corpora.bytes()
    }
}
