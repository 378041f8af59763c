//! The six abilities.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::same;

/// One of the six abilities (SRD 5.1, "Using Ability Scores").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Bodily power.
    Strength,
    /// Agility.
    Dexterity,
    /// Endurance.
    Constitution,
    /// Reason and memory.
    Intelligence,
    /// Perception and insight.
    Wisdom,
    /// Force of personality.
    Charisma,
}

impl Ability {
    /// All six, in the order of a sheet.
    pub const ALL: [Self; 6] =
        [Self::Strength, Self::Dexterity, Self::Constitution, Self::Intelligence, Self::Wisdom, Self::Charisma];

    /// The full lower-case name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strength => "strength",
            Self::Dexterity => "dexterity",
            Self::Constitution => "constitution",
            Self::Intelligence => "intelligence",
            Self::Wisdom => "wisdom",
            Self::Charisma => "charisma",
        }
    }

    /// The name with a capital first letter.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Strength => "Strength",
            Self::Dexterity => "Dexterity",
            Self::Constitution => "Constitution",
            Self::Intelligence => "Intelligence",
            Self::Wisdom => "Wisdom",
            Self::Charisma => "Charisma",
        }
    }

    /// The three capital letters in a list of modifiers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Strength => "STR",
            Self::Dexterity => "DEX",
            Self::Constitution => "CON",
            Self::Intelligence => "INT",
            Self::Wisdom => "WIS",
            Self::Charisma => "CHA",
        }
    }

    /// The ability with this full or three-letter name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL.into_iter().find(|a| same(a.name(), name) || same(a.label(), name))
    }
}
