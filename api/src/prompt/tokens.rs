//! Counting tokens as OpenAI's models do (`cl100k_base`); close enough for others to keep budgets by.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    sync::{LazyLock, Mutex, PoisonError},
};

use lru::LruCache;

use crate::{error::Result, threads};

/// Texts longer than this are counted in pieces, so that no input makes the tokenizer slow.
const PIECE_BYTES: usize = 8 * 1024;
/// Lines whose tokens are remembered.
const LINES_MAX: NonZeroUsize = NonZeroUsize::new(65_536).unwrap();

static LINES: LazyLock<Mutex<LruCache<u64, u32>>> = LazyLock::new(|| Mutex::new(LruCache::new(LINES_MAX)));
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Tokens of a text.
#[must_use]
pub fn count(text: &str) -> u32 {
    let bpe = tiktoken_rs::cl100k_base_singleton();
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(PIECE_BYTES.min(rest.len()));
        let (piece, after) = rest.split_at(end.max(1));
        tokens += bpe.encode_ordinary(piece).len();
        rest = after;
    }
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// The same away from the threads that answer requests, if the text is long enough to be felt there.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn count_apart(text: impl AsRef<str> + Send + 'static) -> Result<u32> {
    threads::apart(text.as_ref().len(), move || count(text.as_ref())).await
}

/// Tokens of a line that is counted again and again, such as a memory. Remembered by a hash that nobody outside can foresee.
#[must_use]
pub fn count_line(line: &str) -> u32 {
    let key = KEYS.hash_one(line);
    remembered(key).unwrap_or_else(|| remember(key, count(line)))
}

/// The same of a text that may be long: what is not remembered is counted as [`count_apart`] does.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn count_lasting(text: impl AsRef<str> + Send + 'static) -> Result<u32> {
    let key = KEYS.hash_one(text.as_ref());
    match remembered(key) {
        Some(tokens) => Ok(tokens),
        None => Ok(remember(key, count_apart(text).await?)),
    }
}

fn remembered(key: u64) -> Option<u32> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied()
}

fn remember(key: u64, tokens: u32) -> u32 {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).put(key, tokens);
    tokens
}
