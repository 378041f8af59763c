//! Whether this server may declare other servers dead.
//!
//! When the database stalls, nobody renews leases, and the first server afterwards would consider all others dead. So a server only
//! judges while its own signs of life arrive, and after a gap only when the others have had time to send theirs.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The longest normal gap between two signs of life, which are sent every two seconds.
const GAP_MAX: Duration = Duration::from_secs(4);
/// How long after a longer gap no server may be declared dead.
const CALM: Duration = Duration::from_secs(5);

/// When this server's signs of life arrived.
#[derive(Debug)]
pub struct Steady(Mutex<Signs>);

#[derive(Debug)]
struct Signs {
    last: Instant,
    /// The first one after a gap.
    again: Option<Instant>,
}

impl Default for Steady {
    fn default() -> Self {
        Self(Mutex::new(Signs { last: Instant::now(), again: None }))
    }
}

impl Steady {
    /// A sign of life arrived.
    pub fn renewed(&self) {
        let mut signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if signs.last.elapsed() > GAP_MAX {
            signs.again = Some(Instant::now());
        }
        signs.last = Instant::now();
    }

    /// Whether servers without a sign of life may be declared dead.
    #[must_use]
    pub fn may_judge(&self) -> bool {
        let signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signs.last.elapsed() <= GAP_MAX && signs.again.is_none_or(|again| again.elapsed() > CALM)
    }
}
