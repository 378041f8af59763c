//! Armor (SRD 5.1, "Equipment: Armor").

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    lookup::{holds, same},
    magic_prefix,
};

/// The armor class bonus of a shield.
pub const SHIELD_BONUS: i32 = 2;

/// The weight of armor, which decides who is proficient and how much of the Dexterity modifier counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArmorCategory {
    /// The whole Dexterity modifier counts.
    Light,
    /// At most 2 of the Dexterity modifier counts.
    Medium,
    /// The Dexterity modifier does not count.
    Heavy,
}

/// The numbers of a suit of armor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdArmor)]
pub struct Armor {
    /// Lower-case name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// Light, medium or heavy.
    pub category: ArmorCategory,
    /// Armor class before Dexterity.
    pub armor_class: i32,
    /// The most of the Dexterity modifier that counts; `None` means all of it.
    #[schema(required = true)]
    pub dexterity_max: Option<i32>,
    /// The Strength score below which it reduces the wearer's speed by 10 feet.
    #[schema(required = true)]
    pub strength: Option<i32>,
    /// Whether it gives disadvantage on Stealth checks.
    pub stealth_disadvantage: bool,
}

use ArmorCategory::{Heavy, Light, Medium};

const fn suit(
    name: &'static str,
    category: ArmorCategory,
    armor_class: i32,
    strength: Option<i32>,
    stealth_disadvantage: bool,
) -> Armor {
    let dexterity_max = match category {
        Light => None,
        Medium => Some(2),
        Heavy => Some(0),
    };
    Armor { name, category, armor_class, dexterity_max, strength, stealth_disadvantage }
}

/// All armor, from light to heavy.
pub const ARMOR: [Armor; 12] = [
    suit("padded", Light, 11, None, true),
    suit("leather", Light, 11, None, false),
    suit("studded leather", Light, 12, None, false),
    suit("hide", Medium, 12, None, false),
    suit("chain shirt", Medium, 13, None, false),
    suit("scale mail", Medium, 14, None, true),
    suit("breastplate", Medium, 14, None, false),
    suit("half plate", Medium, 15, None, true),
    suit("ring mail", Heavy, 14, None, true),
    suit("chain mail", Heavy, 16, Some(13), true),
    suit("splint", Heavy, 17, Some(15), true),
    suit("plate", Heavy, 18, Some(15), true),
];

/// The armor that an item is: by its name in any case, with or without a magic bonus or the word armor, otherwise by
/// the longest armor name that it contains.
#[must_use]
pub fn armor(item: &str) -> Option<&'static Armor> {
    let item = magic_prefix(item).1;
    ARMOR
        .iter()
        .find(|a| same(a.name, item))
        .or_else(|| ARMOR.iter().filter(|a| holds(item, a.name)).max_by_key(|a| a.name.len()))
}
