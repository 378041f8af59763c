//! Dice rolled by hand for a whole turn: the calls of the turn use them up, one after the other.

use std::cell::Cell;

/// The dice of a turn, and how many of them are used.
#[derive(Debug, Default)]
pub struct Hand {
    dice: Vec<u32>,
    /// Used by calls that are committed.
    kept: Cell<usize>,
    /// Used by these and by the batch under way.
    used: Cell<usize>,
}

impl Hand {
    /// Dice in the order they are used.
    #[must_use]
    pub fn of(dice: Vec<u32>) -> Self {
        Self { dice, ..Self::default() }
    }

    /// Those that are left.
    #[must_use]
    pub fn left(&self) -> &[u32] {
        self.dice.get(self.used.get()..).unwrap_or_default()
    }

    /// Uses the next `n`.
    pub fn take(&self, n: usize) {
        self.used.set((self.used.get() + n).min(self.dice.len()));
    }

    /// A batch begins, perhaps again: nothing that was not committed is used.
    pub fn begin(&self) {
        self.used.set(self.kept.get());
    }

    /// A batch is committed.
    pub fn keep(&self) {
        self.kept.set(self.used.get());
    }
}
