//! Provably fair dice: a stream that is fixed before the first roll and that anybody can recompute afterwards.
//!
//! A campaign has a secret server seed and a client seed that the players choose. Only the server seed's hash (the commitment) is
//! shown. Roll number `counter` draws from blocks `HMAC-SHA-256(key = server seed, message = "<client seed>:<counter>:<block>")`,
//! with blocks 0, 1, 2 and so on, and numbers in decimal. Each block is eight 32-bit words, big-endian. A die with `f` faces takes
//! words until one is below the largest multiple of `f` that is at most 2^32. The die shows that word modulo `f`, plus one. So
//! every face is equally likely. When the server seed is revealed, its SHA-256 must be the commitment.
//!
//! `docs/fair-dice.md` has a program of twenty lines that checks a roll. Nothing here may change without a new name for the
//! scheme, because past rolls must stay verifiable. This module does not create, store or rotate seeds, because that needs
//! randomness and I/O.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::{Dice, OutOfDice};

/// The block size of HMAC-SHA-256 in bytes. Keys are padded with zeros to this size.
const KEY_BLOCK: usize = 64;

/// The seeds of a campaign's fair dice.
#[derive(Clone)]
pub struct FairSeed {
    mac: Hmac<Sha256>,
    commitment: String,
}

impl FairSeed {
    /// The seeds of a campaign. `server_seed` must come from a cryptographic source and stay secret until it is
    /// rotated. `client_seed` may be any text.
    #[must_use]
    pub fn new(server_seed: &[u8; 32], client_seed: &str) -> Self {
        // HMAC pads a key that is shorter than a block with zeros.
        let mut key = [0; KEY_BLOCK];
        for (byte, seed) in key.iter_mut().zip(server_seed) {
            *byte = *seed;
        }
        let mut mac = Hmac::<Sha256>::new(&key.into());
        mac.update(client_seed.as_bytes());
        mac.update(b":");
        Self { mac, commitment: commitment(server_seed) }
    }

    /// The commitment, which is shown while the seed is secret: see [`commitment`].
    #[must_use]
    pub fn commitment(&self) -> &str {
        &self.commitment
    }

    /// The dice of one roll. Use each counter for one roll only: the owner of the seed must count upwards and never
    /// back.
    #[must_use]
    pub fn roll(&self, counter: u64) -> FairDice {
        let mut mac = self.mac.clone();
        mac.update(counter.to_string().as_bytes());
        mac.update(b":");
        FairDice { mac, block: 0, words: [0; 8], next: 8 }
    }
}

impl std::fmt::Debug for FairSeed {
    /// Never prints the seed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FairSeed").field("commitment", &self.commitment).finish_non_exhaustive()
    }
}

/// The commitment to a server seed: the SHA-256 of its 32 bytes in lower-case hexadecimal.
#[must_use]
pub fn commitment(server_seed: &[u8; 32]) -> String {
    Sha256::digest(server_seed).iter().fold(String::with_capacity(64), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        text
    })
}

/// The dice of one roll of the fair stream.
pub struct FairDice {
    mac: Hmac<Sha256>,
    block: u64,
    words: [u32; 8],
    next: usize,
}

impl FairDice {
    fn word(&mut self) -> u32 {
        if self.next >= self.words.len() {
            self.refill();
        }
        let word = self.words.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        word
    }

    fn refill(&mut self) {
        let mut mac = self.mac.clone();
        mac.update(self.block.to_string().as_bytes());
        let bytes = mac.finalize().into_bytes();
        for (word, four) in self.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = four.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte));
        }
        self.block += 1;
        self.next = 0;
    }
}

impl Dice for FairDice {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let faces = faces.max(1);
        // 2^32 modulo faces. This many of the largest words would favour the low faces.
        let surplus = faces.wrapping_neg() % faces;
        loop {
            let word = self.word();
            if word <= u32::MAX - surplus {
                return Ok(word % faces + 1);
            }
        }
    }
}

impl std::fmt::Debug for FairDice {
    /// Never prints the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FairDice").field("block", &self.block).finish_non_exhaustive()
    }
}
