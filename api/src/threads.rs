//! Which thread this is. A connection is watched by the thread that opened it, so work is spared a wake-up of another thread
//! if each thread has connections of its own.

use std::sync::{
    LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// Work on more bytes than this is felt by whoever else is answered by the same thread.
const APART_BYTES: usize = 2 * 1024;
/// So much of it goes on at once: as many as there are cores. The rest waits for its turn.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(shares() - 1));

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's share of `shares` of something; 0 if there is one.
#[must_use]
pub fn share_of(shares: usize) -> usize {
    HERE.with(|here| here % shares.max(1))
}

/// So many shares are worth having: one for each core, and one for the thread that started them.
#[must_use]
pub fn shares() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) + 1
}

/// Does work on so many bytes, away from the threads that answer requests if it is enough to be felt there.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn apart<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if bytes <= APART_BYTES {
        return Ok(work());
    }
    let _place = PLACES.acquire().await.map_err(Error::internal)?;
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}
