//! Limits of an encounter.

/// Participants, with the dead.
pub const PARTICIPANTS_MAX: usize = 200;
/// Rounds.
pub const ROUNDS_MAX: u32 = 10_000;
/// The smallest width and height of the grid, in squares.
pub const GRID_MIN: i32 = 5;
/// The largest width and height of the grid, in squares.
pub const GRID_MAX: i32 = 100;
/// Squares above or below the ground.
pub const HEIGHT_MAX: i32 = 1_000;
/// Squares of one kind of terrain.
pub const SQUARES_MAX: usize = 10_000;
/// Hazards.
pub const HAZARDS_MAX: usize = 200;
/// Squares of a given path.
pub const PATH_MAX: usize = 200;
/// Entries in each of a participant's lists: resistances, resources, attacks, conditions.
pub const LIST_MAX: usize = 100;
/// Creatures in the area of one spell.
pub const TARGETS_MAX: usize = 50;
/// Damage sources of one attack, and reactions to it.
pub const SOURCES_MAX: usize = 20;
/// Characters of a sum of dice.
pub const FORMULA_CHARS_MAX: usize = 100;
/// Characters of an id.
pub const ID_CHARS_MAX: usize = 100;
/// Characters of a name, a source, a description of a condition.
pub const NAME_CHARS_MAX: usize = 200;
/// Characters of the final notes.
pub const NOTES_CHARS_MAX: usize = 10_000;
/// Hit points, damage and healing; modifiers also have its negative as a limit.
pub const AMOUNT_MAX: i32 = 1_000_000;
