//! The rules of the game as pure functions of state and dice: no clock, no randomness of their own, no I/O.
//!
//! - [`dice`]: sources of dice, and dice formulas.
//! - [`srd`]: the tables of the System Reference Document 5.1.
//! - [`sheet`]: a creature as the rules see it.
//! - [`resolve`]: attacks, checks, saves, damage, healing and rests: take creatures, arguments and dice, and return an
//!   outcome with the changes that it requires.
//! - [`encounter`]: fights as simulations: what an action does, and what the fight did to everybody at the end.

pub mod dice;
pub mod encounter;
pub mod resolve;
pub mod sheet;
pub mod srd;

/// The six abilities (SRD 5.1, "Using Ability Scores").
pub const ABILITIES: [&str; 6] = ["strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma"];

/// Creature sizes (SRD 5.1, "Monsters: Size").
pub const SIZES: [&str; 6] = ["tiny", "small", "medium", "large", "huge", "gargantuan"];

/// The modifier of an ability score: its distance from ten, halved and rounded down (SRD 5.1, "Ability Scores and
/// Modifiers").
#[must_use]
pub const fn ability_modifier(score: i32) -> i32 {
    score.saturating_sub(10).div_euclid(2)
}
