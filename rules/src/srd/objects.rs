//! Typical difficulties, and armor classes of objects.

use serde::Serialize;

/// A number with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rated {
    /// Lower-case name.
    pub name: &'static str,
    /// The DC or armor class.
    pub number: i32,
}

const fn rated(name: &'static str, number: i32) -> Rated {
    Rated { name, number }
}

/// Typical DCs (SRD 5.1, "Ability Checks").
pub const DIFFICULTIES: [Rated; 6] = [
    rated("very easy", 5),
    rated("easy", 10),
    rated("medium", 15),
    rated("hard", 20),
    rated("very hard", 25),
    rated("nearly impossible", 30),
];

/// Armor class of objects by material (SRD 5.1, "Objects").
pub const OBJECT_ARMOR_CLASSES: [Rated; 7] = [
    rated("cloth", 11),
    rated("glass", 13),
    rated("wood", 15),
    rated("stone", 17),
    rated("iron", 19),
    rated("mithral", 21),
    rated("adamantine", 23),
];
