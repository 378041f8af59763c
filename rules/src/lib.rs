//! The rules of the game, pure: state and dice in, values out. No clock, no randomness of its own, no I/O.
//!
//! - [`dice`]: where dice fall from, and formulas of them.
//! - [`srd`]: the tables of the System Reference Document 5.1.
//! - [`sheet`]: a creature as the rules see it.
//! - [`resolve`]: attacks, checks, saves, damage, healing and rests: a creature, arguments and dice in; an outcome and
//!   the changes of state it asks for out.
//! - [`encounter`]: a fight as a simulation: what an action comes to, what it did to everybody in the end.

pub mod dice;
pub mod encounter;
pub mod resolve;
pub mod sheet;
pub mod srd;

/// The six abilities (SRD 5.1, "Using Ability Scores").
pub const ABILITIES: [&str; 6] = ["strength", "dexterity", "constitution", "intelligence", "wisdom", "charisma"];

/// Creature sizes (SRD 5.1, "Monsters: Size").
pub const SIZES: [&str; 6] = ["tiny", "small", "medium", "large", "huge", "gargantuan"];

/// The modifier of an ability score: half of what it is above ten, rounded down (SRD 5.1, "Ability Scores and Modifiers").
#[must_use]
pub const fn ability_modifier(score: i32) -> i32 {
    score.saturating_sub(10).div_euclid(2)
}
