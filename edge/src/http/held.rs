//! Holds answers back until what they depend on is stored.
//!
//! Dice whose counters are being spent hold all answers of this server, because an answer could reveal these dice.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{sync::Notify, time};

/// How long an answer waits.
const WAIT_MAX: Duration = Duration::from_secs(5);

static HOLDS: AtomicUsize = AtomicUsize::new(0);
static RELEASED: Notify = Notify::const_new();

/// Holds all answers until this is dropped.
#[must_use]
pub struct Hold(());

impl Hold {
    pub fn answers() -> Self {
        HOLDS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.fetch_sub(1, Ordering::SeqCst);
        RELEASED.notify_waiters();
    }
}

/// Waits until nothing holds answers, but no longer than five seconds.
pub async fn released() {
    let all = async {
        loop {
            let notified = RELEASED.notified();
            if HOLDS.load(Ordering::SeqCst) == 0 {
                return;
            }
            notified.await;
        }
    };
    if time::timeout(WAIT_MAX, all).await.is_err() {
        tracing::error!("an answer was sent before used counters were spent: the wait took too long");
    }
}
