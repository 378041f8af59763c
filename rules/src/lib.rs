//! The rules of the game, pure: state and dice in, values out. No clock, no randomness of its own, no I/O.
//!
//! So far the vocabulary of the System Reference Document 5.1 that sheets are checked against.

pub mod dice;

/// The six abilities (SRD 5.1, "Using Ability Scores").
pub const ABILITIES: [&str; 6] = ["strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma"];

/// Creature sizes (SRD 5.1, "Monsters: Size").
pub const SIZES: [&str; 6] = ["tiny", "small", "medium", "large", "huge", "gargantuan"];

/// The modifier of an ability score: half of what it is above ten, rounded down (SRD 5.1, "Ability Scores and Modifiers").
#[must_use]
pub const fn ability_modifier(score: i32) -> i32 {
    (score - 10).div_euclid(2)
}
