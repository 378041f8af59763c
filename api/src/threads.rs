//! Which thread this is. A connection is watched by the thread that opened it, so work is spared a wake-up of another thread
//! if each thread has connections of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

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
