//! Counts tokens like OpenAI's models (`cl100k_base`). The numbers are close enough for budgets with other models.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    sync::{LazyLock, Mutex, PoisonError},
};

use lru::LruCache;

use crate::{error::Result, threads};

/// Longer texts are counted in pieces, so that no input makes the tokenizer slow.
const PIECE_BYTES: usize = 8 * 1024;
/// The most lines whose token counts are cached.
const LINES_MAX: NonZeroUsize = NonZeroUsize::new(65_536).unwrap();

static LINES: LazyLock<Mutex<LruCache<u64, u32>>> = LazyLock::new(|| Mutex::new(LruCache::new(LINES_MAX)));
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The number of tokens in a text.
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

/// The same, but a long text is counted on another thread, so that requests do not wait.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn count_apart(text: impl AsRef<str> + Send + 'static) -> Result<u32> {
    threads::apart(text.as_ref().len(), move || count(text.as_ref())).await
}

/// The number of tokens in a line that is counted often, such as a memory. Cached by a hash that nobody outside can predict.
#[must_use]
pub fn count_line(line: &str) -> u32 {
    let key = KEYS.hash_one(line);
    remembered(key).unwrap_or_else(|| remember(key, count(line)))
}

/// The same for a text that may be long. If it is not cached, it is counted like [`count_apart`].
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
