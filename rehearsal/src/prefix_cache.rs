//! Provider-style prompt caching: how much of a prompt's beginning was seen before.
//!
//! A prompt is divided into blocks of 128 tokens, and a token counts as 4 bytes. Each block's hash continues that of
//! the previous block, so one hash stands for everything up to its block. Hashes that were seen are kept in a table of
//! fixed size. The longest known beginning of a prompt is what a provider would have read from its cache.
//!
//! The table must never grow and never allocate per request. It evicts the least recently used block of a set. Hashes
//! have 64 bits and may collide, but a collision only causes a wrong figure.

/// The bytes that count as one token.
pub(crate) const TOKEN_BYTES: usize = 4;
/// The tokens per block, which is the step in which cached tokens are counted.
const BLOCK_TOKENS: usize = 128;
const BLOCK_BYTES: usize = BLOCK_TOKENS * TOKEN_BYTES;
/// Fewer cached tokens than this are reported as 0.
const CACHED_TOKENS_MIN: usize = 1_024;

/// The number of blocks in a set.
const WAYS: usize = 8;
/// The number of sets in the table, a power of two. 131,072 blocks in 1 MiB are the beginnings of 64 MiB of prompts.
const SETS: usize = 16_384;

const KEY_A: u64 = 0xa076_1d64_78bd_642f;
const KEY_B: u64 = 0xe703_7ed1_a0b4_28db;

/// The blocks of one prompt, fed piece by piece.
pub(crate) struct Chain {
    block: [u8; BLOCK_BYTES],
    filled: usize,
    hash: u64,
    blocks: Vec<u64>,
}

impl Chain {
    /// An empty prompt.
    pub(crate) fn new() -> Self {
        Self { block: [0; BLOCK_BYTES], filled: 0, hash: KEY_A, blocks: Vec::with_capacity(64) }
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = bytes.len().min(BLOCK_BYTES - self.filled);
            let (head, rest) = bytes.split_at(taken);
            if let Some(free) = self.block.get_mut(self.filled..self.filled + taken) {
                free.copy_from_slice(head);
            }
            self.filled += taken;
            bytes = rest;
            if self.filled == BLOCK_BYTES {
                self.hash = hash_bytes(self.hash, &self.block);
                self.blocks.push(self.hash);
                self.filled = 0;
            }
        }
    }

    /// The tokens of the whole prompt, rounded up.
    pub(crate) fn tokens(&self) -> usize {
        (self.blocks.len() * BLOCK_BYTES + self.filled).div_ceil(TOKEN_BYTES)
    }

    /// A number that stands for the whole prompt.
    pub(crate) fn fingerprint(&self) -> u64 {
        let tail = self.block.get(..self.filled).unwrap_or_default();
        hash_bytes(self.hash, tail)
    }
}

/// The blocks that were seen. Each set has its most recently used block first; 0 is an empty place.
pub(crate) struct PrefixCache {
    sets: Vec<[u64; WAYS]>,
}

impl PrefixCache {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { sets: vec![[0; WAYS]; SETS] }
    }

    /// The tokens at the beginning of `chain` that were seen before in `namespace`. Afterwards all its blocks count as
    /// seen.
    pub(crate) fn visit(&mut self, namespace: u64, chain: &Chain) -> usize {
        let mut known = 0;
        for (at, hash) in chain.blocks.iter().enumerate() {
            let seen = self.touch(mix(hash ^ namespace, KEY_B).max(1));
            if seen && known == at {
                known += 1;
            }
        }
        let tokens = known * BLOCK_TOKENS;
        if tokens < CACHED_TOKENS_MIN { 0 } else { tokens }
    }

    /// Moves a block to the front of its set. Returns whether it was there.
    fn touch(&mut self, key: u64) -> bool {
        let index = usize::try_from(key % SETS as u64).unwrap_or_default();
        let Some(set) = self.sets.get_mut(index) else {
            return false;
        };
        let place = set.iter().position(|entry| *entry == key);
        if let Some(recent) = set.get_mut(..=place.unwrap_or(WAYS - 1)) {
            recent.rotate_right(1);
        }
        if let Some(first) = set.first_mut() {
            *first = key;
        }
        place.is_some()
    }
}

/// The namespace for a cache key and model. Prompts in different namespaces share nothing.
pub(crate) fn namespace(cache_key: &str, model: &str) -> u64 {
    hash_bytes(hash_bytes(KEY_B, cache_key.as_bytes()), model.as_bytes())
}

/// Continues `seed` over `bytes`, 16 at a time, by folded multiplication.
fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = seed ^ KEY_A;
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        hash = fold(hash, pair);
    }
    let mut last = [0_u8; 16];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(fold(hash, &last) ^ bytes.len() as u64, KEY_B)
}

fn fold(hash: u64, pair: &[u8; 16]) -> u64 {
    let word = u128::from_le_bytes(*pair);
    mix(low(word) ^ KEY_A ^ hash, low(word >> 64) ^ KEY_B)
}

/// Multiplies to 128 bits and folds the halves.
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    low(product) ^ low(product >> 64)
}

fn low(word: u128) -> u64 {
    u64::try_from(word & u128::from(u64::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(text: &str) -> Chain {
        let mut chain = Chain::new();
        chain.push(text.as_bytes());
        chain
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = "the same words in any cut ".repeat(100);
        let mut cut = Chain::new();
        for piece in text.as_bytes().chunks(7) {
            cut.push(piece);
        }
        assert_eq!(cut.fingerprint(), chain(&text).fingerprint());
        assert_eq!(cut.tokens(), text.len().div_ceil(4));
    }

    #[test]
    fn cached_in_steps_from_the_threshold() {
        let mut cache = PrefixCache::new();
        let long = "a".repeat(512 * 9 + 100);
        assert_eq!(cache.visit(1, &chain(&long)), 0);
        assert_eq!(cache.visit(1, &chain(&long)), 128 * 9);
        assert_eq!(cache.visit(1, &chain(&long[..512 * 8])), 1_024);
        assert_eq!(cache.visit(1, &chain(&long[..512 * 8 - 1])), 0);
        assert_eq!(cache.visit(2, &chain(&long)), 0);
    }

    #[test]
    fn a_change_ends_the_prefix() {
        let mut cache = PrefixCache::new();
        let long = "b".repeat(512 * 20);
        cache.visit(1, &chain(&long));
        let changed = format!("{}x{}", &long[..512 * 10 + 5], &long[512 * 10 + 6..]);
        assert_eq!(cache.visit(1, &chain(&changed)), 1_280);
    }
}
