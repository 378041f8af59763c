//! What an encounter holds at most.

/// Participants, the fallen included.
pub const PARTICIPANTS_MAX: usize = 200;
/// Rounds.
pub const ROUNDS_MAX: u32 = 10_000;
/// Squares of the grid, each way.
pub const GRID_MIN: i32 = 5;
/// Squares of the grid, each way.
pub const GRID_MAX: i32 = 100;
/// Squares above or below the ground.
pub const HEIGHT_MAX: i32 = 1_000;
/// Squares of one kind of terrain.
pub const SQUARES_MAX: usize = 10_000;
/// Hazards.
pub const HAZARDS_MAX: usize = 200;
/// Squares of a path that is written out.
pub const PATH_MAX: usize = 200;
/// Entries of a list of a participant: resistances, resources, attacks, conditions.
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
/// Characters of the notes at the end.
pub const NOTES_CHARS_MAX: usize = 10_000;
/// Hit points, damage, healing; the negative of it for modifiers.
pub const AMOUNT_MAX: i32 = 1_000_000;
