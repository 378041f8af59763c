//! What a formula may ask for. Everything that grows with a formula has a limit here, so that no formula is slow.
//!
//! To add a limit: a field with its unit last in the name, its default, and the place that checks it.

/// Limits of a formula. A breach is an error, never a slow answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a formula, its comment included.
    pub bytes_max: usize,
    /// Levels of brackets within brackets: `(…)`, `{…}` and the arguments of functions.
    pub depth_max: u32,
    /// Faces of a die. Dice are drawn as 32-bit numbers, so more than 2^31 - 1 is treated as that.
    pub faces_max: u32,
    /// Dice one term asks for; those added by explosions and rerolls are not counted here.
    pub dice_per_term_max: u32,
    /// Dice drawn for one formula, those of explosions and rerolls included.
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
    /// Deepest nesting any setting allows: the parser descends once per bracket and must stay within a thread's stack.
    pub const DEPTH_CEILING: u32 = 256;

    /// The faces limit that is used: values of dice are 32-bit signed numbers.
    pub(super) fn faces_ceiling(&self) -> u32 {
        self.faces_max.min(i32::MAX.unsigned_abs())
    }

    /// The depth limit that is used.
    pub(super) fn depth_ceiling(&self) -> u32 {
        self.depth_max.min(Self::DEPTH_CEILING)
    }
}
