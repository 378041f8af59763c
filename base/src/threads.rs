//! Which thread the code runs on. The thread that opened a connection also polls it. So if each thread has its own
//! connections, no other thread must be woken.

use std::sync::{
    LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// Work on more bytes than this noticeably delays other requests of the same thread.
const APART_BYTES: usize = 2 * 1024;
/// Limits such work to as many tasks as there are cores. The rest waits.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(shares() - 1));

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's index among `shares` shares; 0 if there is only one.
#[must_use]
pub fn share_of(shares: usize) -> usize {
    HERE.with(|here| here % shares.max(1))
}

/// How many shares are useful: one per core, and one for the main thread.
#[must_use]
pub fn shares() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) + 1
}

/// Runs work on `bytes` bytes, away from the threads that answer requests if there are many bytes.
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
