//! Limits of formulas. Everything that grows with a formula has a limit here, so that no formula is slow.
//!
//! To add a limit, add a field whose name ends with `max`, its default, and the check.

/// Limits of a formula. Exceeding one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a formula, with its comment.
    pub bytes_max: usize,
    /// Nested brackets: `(…)`, `{…}` and the arguments of functions.
    pub depth_max: u32,
    /// Faces of a die. Dice are drawn as 32-bit numbers, so a limit above 2^31 - 1 is lowered to that.
    pub faces_max: u32,
    /// Dice of one term, at most a million, not counting those added by explosions and rerolls.
    pub dice_per_term_max: u32,
    /// Dice drawn for one formula, at most a million, with those of explosions and rerolls.
    pub dice_per_formula_max: u32,
    /// Dice that explosions and rerolls of one term may add.
    pub extra_dice_per_term_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 1_000,
            depth_max: 64,
            faces_max: 1_000_000_000,
            dice_per_term_max: 999,
            dice_per_formula_max: 10_000,
            extra_dice_per_term_max: 1_000,
        }
    }
}

impl Limits {
    /// The highest possible depth limit: the parser recurses once per bracket and must stay within a thread's stack.
    pub const DEPTH_CEILING: u32 = 256;

    /// The highest possible dice limit, because dice are kept in memory.
    pub const DICE_CEILING: u32 = 1_000_000;

    /// These limits, lowered to their ceilings.
    pub(super) fn within_ceilings(self) -> Self {
        Self {
            depth_max: self.depth_max.min(Self::DEPTH_CEILING),
            // Dice have signed 32-bit values.
            faces_max: self.faces_max.min(i32::MAX.unsigned_abs()),
            dice_per_term_max: self.dice_per_term_max.min(Self::DICE_CEILING),
            dice_per_formula_max: self.dice_per_formula_max.min(Self::DICE_CEILING),
            extra_dice_per_term_max: self.extra_dice_per_term_max.min(Self::DICE_CEILING),
            ..self
        }
    }
}
