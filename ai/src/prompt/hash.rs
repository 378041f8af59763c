//! The hash by which texts of prompts are compared.

use base::hex::hex;
use sha2::{Digest, Sha256};

/// The first 16 hexadecimal digits of a hash.
#[must_use]
pub fn short_hash(hash: &[u8]) -> String {
    hex(hash.get(..8).unwrap_or(hash))
}

/// The hash of several sections, and their tokens together.
#[must_use]
pub fn summed<'s>(sections: impl Iterator<Item = (&'s str, u32)>) -> (String, u32) {
    let (mut hash, mut tokens) = (Sha256::new(), 0u32);
    for (its_hash, its_tokens) in sections {
        hash.update(its_hash.as_bytes());
        tokens = tokens.saturating_add(its_tokens);
    }
    (short_hash(&hash.finalize()), tokens)
}
