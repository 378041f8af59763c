//! Where dice fall from. Everything that rolls takes a [`Dice`] as an argument; nothing here knows a clock or a random
//! number generator of its own.

use rand::Rng;

/// Something that dice fall from: a generator, the fair stream of a campaign, or dice somebody rolled by hand.
pub trait Dice {
    /// One die of `faces` (1 or more) sides: a number from 1 to `faces`.
    ///
    /// # Errors
    /// When nothing more falls from here: given dice that have run out or do not fit.
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice>;
}

/// Dice of a random number generator, each face as likely as every other.
pub struct Random<R>(pub R);

impl<R: Rng> Dice for Random<R> {
    #[inline]
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let faces = faces.max(1);
        // The upper half of word × faces is uniform once the words are left out whose lower half falls into the first
        // 2^32 modulo faces: what remains is the same number of words for each face. The modulo is rarely needed.
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

/// Why no die fell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfDice {
    /// The given dice are used up; `index` (from 0) is the one that was missing.
    TooFew {
        /// Dice that were given.
        index: usize,
        /// Faces of the die that was to be rolled.
        faces: u32,
    },
    /// The given die at `index` shows what a die of `faces` sides cannot.
    OutOfRange {
        /// Which die, from 0.
        index: usize,
        /// What it shows.
        value: u32,
        /// Faces of the die that was to be rolled.
        faces: u32,
    },
}

impl std::fmt::Display for OutOfDice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew { index, faces } => {
                write!(f, "{index} dice were given and one more is needed: a d{faces}")
            }
            Self::OutOfRange { index, value, faces } => {
                write!(f, "die {} shows {value}, but here a d{faces} is rolled", index + 1)
            }
        }
    }
}

impl std::error::Error for OutOfDice {}

/// Dice somebody rolled by hand, consumed in order.
pub struct Given<'a> {
    values: &'a [u32],
    next: usize,
}

impl<'a> Given<'a> {
    /// Dice that show these values.
    #[must_use]
    pub const fn new(values: &'a [u32]) -> Self {
        Self { values, next: 0 }
    }

    /// Those nobody rolled.
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
