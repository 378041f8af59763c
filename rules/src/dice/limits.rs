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
    /// Dice one term asks for, a million at most; those added by explosions and rerolls are not counted here.
    pub dice_per_term_max: u32,
    /// Dice drawn for one formula, a million at most; those of explosions and rerolls are included.
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

    /// Most dice any setting allows: they are kept in memory.
    pub const DICE_CEILING: u32 = 1_000_000;

    /// These limits, none of them above its ceiling.
    pub(super) fn within_ceilings(self) -> Self {
        Self {
            depth_max: self.depth_max.min(Self::DEPTH_CEILING),
            // Values of dice are 32-bit signed numbers.
            faces_max: self.faces_max.min(i32::MAX.unsigned_abs()),
            dice_per_term_max: self.dice_per_term_max.min(Self::DICE_CEILING),
            dice_per_formula_max: self.dice_per_formula_max.min(Self::DICE_CEILING),
            extra_dice_per_term_max: self.extra_dice_per_term_max.min(Self::DICE_CEILING),
            ..self
        }
    }
}
