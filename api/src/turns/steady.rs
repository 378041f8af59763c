//! Whether this server may take other servers for dead.
//!
//! When the database stands still, nobody's leases are renewed, and whoever comes first afterwards would find everybody else dead. So a
//! server judges only while its own sign of life comes through, and not until a moment after it came through again: by then the others
//! have given theirs, too.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Between two signs of life, when all is well: they are given every two seconds.
const GAP_MAX: Duration = Duration::from_secs(4);
/// How long after a longer gap nobody is taken for dead.
const CALM: Duration = Duration::from_secs(5);

/// When this server's sign of life came through.
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
    /// It came through.
    pub fn renewed(&self) {
        let mut signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if signs.last.elapsed() > GAP_MAX {
            signs.again = Some(Instant::now());
        }
        signs.last = Instant::now();
    }

    /// Whether others that give no sign of life are dead.
    #[must_use]
    pub fn may_judge(&self) -> bool {
        let signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signs.last.elapsed() <= GAP_MAX && signs.again.is_none_or(|again| again.elapsed() > CALM)
    }
}
