//! The hash by which texts of prompts are compared.

use base::hex::hex;

/// The first 16 hexadecimal digits of a hash.
#[must_use]
pub fn short_hash(hash: &[u8]) -> String {
    hex(hash.get(..8).unwrap_or(hash))
}
