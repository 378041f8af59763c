//! Where a reply's text goes while the model writes it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Receives a reply's text while the model writes it.
#[derive(Clone)]
pub struct Sink {
    hear: Arc<dyn Fn(&str) + Send + Sync>,
    has_told: Arc<AtomicBool>,
}

impl Sink {
    /// Calls `hear` with each piece of text, in order. It must not block.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { hear: Arc::new(hear), has_told: Arc::default() }
    }

    /// Whether any text was passed on. It cannot be withdrawn.
    #[must_use]
    pub fn has_told(&self) -> bool {
        self.has_told.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self, text: &str) {
        self.has_told.store(true, Ordering::Relaxed);
        (self.hear)(text);
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}
