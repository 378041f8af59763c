//! The kinds of dice and what they show.

/// The kind of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DieKind {
    /// Shows 1 to its number of faces.
    #[default]
    Standard,
    /// A Fate (Fudge) die: -1, 0 or 1. `faces` is 3.
    Fate,
    /// A coin: 0 or 1. `faces` is 2.
    Coin,
}

/// The kind of dice that a modifier applies to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) kind: DieKind,
    pub(super) faces: u32,
}

impl Sides {
    /// The lowest and highest value of a die.
    pub(super) fn span(self) -> (i32, i32) {
        match self.kind {
            DieKind::Standard => (1, i32::try_from(self.faces).unwrap_or(i32::MAX)),
            DieKind::Fate => (-1, 1),
            DieKind::Coin => (0, 1),
        }
    }

    /// The value that a die shows for a number from the source (from 1).
    pub(super) fn face_value(self, drawn: u32) -> i32 {
        let drawn = drawn.cast_signed();
        match self.kind {
            DieKind::Standard => drawn,
            DieKind::Fate => drawn.wrapping_sub(2),
            DieKind::Coin => drawn.wrapping_sub(1),
        }
    }
}
