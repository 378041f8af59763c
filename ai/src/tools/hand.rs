//! Dice rolled by hand for a whole turn. The turn's calls use them in order.

use std::cell::Cell;

/// The dice of a turn, and how many of them have been used.
#[derive(Debug, Default)]
pub struct Hand {
    dice: Vec<u32>,
    /// Dice used by committed calls.
    kept: Cell<usize>,
    /// Those, and the dice used by the present batch.
    used: Cell<usize>,
}

impl Hand {
    /// Dice in the order in which they are used.
    #[must_use]
    pub fn of(dice: Vec<u32>) -> Self {
        Self { dice, ..Self::default() }
    }

    /// The unused dice.
    #[must_use]
    pub fn left(&self) -> &[u32] {
        self.dice.get(self.used.get()..).unwrap_or_default()
    }

    /// Uses the next `n` dice.
    pub fn take(&self, n: usize) {
        self.used.set((self.used.get() + n).min(self.dice.len()));
    }

    /// Starts a batch, possibly again. Dice of uncommitted calls are unused again.
    pub fn begin(&self) {
        self.used.set(self.kept.get());
    }

    /// Keeps the count when a batch is committed.
    pub fn keep(&self) {
        self.kept.set(self.used.get());
    }
}
