//! The 13 damage types.

use super::same;

/// Damage types (SRD 5.1, "Damage Types").
pub const DAMAGE_TYPES: [&str; 13] = [
    "acid",
    "bludgeoning",
    "cold",
    "fire",
    "force",
    "lightning",
    "necrotic",
    "piercing",
    "poison",
    "psychic",
    "radiant",
    "slashing",
    "thunder",
];

/// The damage type with this name, in any case.
#[must_use]
pub fn damage_type(name: &str) -> Option<&'static str> {
    DAMAGE_TYPES.into_iter().find(|known| same(known, name))
}
