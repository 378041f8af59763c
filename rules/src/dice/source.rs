//! Sources of dice. Everything that rolls takes a [`Dice`] as an argument. Nothing here has a clock or a random number
//! generator of its own.

use rand::Rng;

/// A source of dice: a generator, a campaign's fair stream, or dice that somebody rolled by hand.
pub trait Dice {
    /// Rolls one die with `faces` (at least 1) sides and returns a number from 1 to `faces`.
    ///
    /// # Errors
    /// If the source has no valid die: given dice have run out or do not match.
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice>;
}

impl<D: Dice + ?Sized> Dice for &mut D {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        (**self).roll(faces)
    }
}

/// Dice from a random number generator. Every face is equally likely.
pub struct Random<R>(pub R);

impl<R: Rng> Dice for Random<R> {
    #[inline]
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let faces = faces.max(1);
        // The upper half of word × faces is uniform if words are rejected whose lower half is below 2^32 modulo faces:
        // the same number of words then remains for each face. The modulo is rarely needed.
        let mut product = u64::from(self.0.next_u32()) * u64::from(faces);
        if (product as u32) < faces {
            let surplus = faces.wrapping_neg() % faces;
            while (product as u32) < surplus {
                product = u64::from(self.0.next_u32()) * u64::from(faces);
            }
        }
        Ok((product >> 32) as u32 + 1)
    }
}

/// Why there is no die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfDice {
    /// The given dice are used up. `index` (from 0) is the missing one.
    TooFew {
        /// The number of given dice.
        index: usize,
        /// The faces of the die that was needed.
        faces: u32,
    },
    /// The given die at `index` shows a value that a die with `faces` sides does not have.
    OutOfRange {
        /// The die's index, from 0.
        index: usize,
        /// Its value.
        value: u32,
        /// The faces of the die that was needed.
        faces: u32,
    },
}

impl std::fmt::Display for OutOfDice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew { index, faces } => {
                write!(f, "too few dice were given ({index}), and at least one more is needed: a d{faces}")
            }
            Self::OutOfRange { index, value, faces } => {
                write!(f, "die {} shows {value}, but the roll needs a d{faces} there", index + 1)
            }
        }
    }
}

impl std::error::Error for OutOfDice {}

/// Dice rolled by hand, used in order.
pub struct Given<'a> {
    values: &'a [u32],
    next: usize,
}

impl<'a> Given<'a> {
    /// Dice with these values.
    #[must_use]
    pub const fn new(values: &'a [u32]) -> Self {
        Self { values, next: 0 }
    }

    /// The dice that were not used.
    #[must_use]
    pub fn unused(&self) -> &'a [u32] {
        self.values.get(self.next..).unwrap_or_default()
    }
}

impl Dice for Given<'_> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let index = self.next;
        let value = *self.values.get(index).ok_or(OutOfDice::TooFew { index, faces })?;
        if !(1..=faces).contains(&value) {
            return Err(OutOfDice::OutOfRange { index, value, faces });
        }
        self.next += 1;
        Ok(value)
    }
}
