//! Effects that change rolls while they last: spells, class features and actions, by their names on a sheet.

use serde::Serialize;

use super::same;
use crate::srd::Advantage;

/// What an effect does to the creature that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EffectRule {
    /// Its name on a sheet.
    pub name: &'static str,
    /// The bonus to armor class.
    pub armor_class: i32,
    /// The minimum armor class before Dexterity, if no armor is worn.
    pub unarmored: Option<i32>,
    /// The minimum armor class.
    pub armor_class_min: Option<i32>,
    /// The sides of a die added to its attack rolls; negative if subtracted.
    pub attack_die: i32,
    /// The sides of a die added to its saving throws; negative if subtracted.
    pub save_die: i32,
    /// The sides of a die added to its ability checks.
    pub check_die: i32,
    /// Its own attack rolls.
    pub attacks: Advantage,
    /// Attack rolls against it.
    pub attacks_against: Advantage,
    /// Its ability checks.
    pub checks: Advantage,
    /// Its Strength checks and Strength saving throws.
    pub strength: Advantage,
    /// Its Dexterity saving throws.
    pub dexterity_saves: Advantage,
    /// Damage types it resists.
    pub resistances: &'static [&'static str],
    /// Whether it ends after the first roll that it changes.
    pub once: bool,
}

const NONE: EffectRule = EffectRule {
    name: "",
    armor_class: 0,
    unarmored: None,
    armor_class_min: None,
    attack_die: 0,
    save_die: 0,
    check_die: 0,
    attacks: Advantage::None,
    attacks_against: Advantage::None,
    checks: Advantage::None,
    strength: Advantage::None,
    dexterity_saves: Advantage::None,
    resistances: &[],
    once: false,
};

const ADV: Advantage = Advantage::Advantage;
const DIS: Advantage = Advantage::Disadvantage;
const WEAPONS: &[&str] = &["bludgeoning", "piercing", "slashing"];

/// The known effects. Others on a sheet change nothing.
///
/// Three have additional conditions that resolvers check: Rage and Reckless Attack only work with Strength in melee,
/// and Dodge ends when the creature can no longer move.
pub const EFFECTS: [EffectRule; 16] = [
    EffectRule { name: "Bane", attack_die: -4, save_die: -4, ..NONE },
    EffectRule { name: "Barkskin", armor_class_min: Some(16), ..NONE },
    EffectRule { name: "Bless", attack_die: 4, save_die: 4, ..NONE },
    EffectRule { name: "Blur", attacks_against: DIS, ..NONE },
    EffectRule { name: "Dodge", attacks_against: DIS, dexterity_saves: ADV, ..NONE },
    EffectRule { name: "Faerie Fire", attacks_against: ADV, ..NONE },
    EffectRule { name: "Guidance", check_die: 4, once: true, ..NONE },
    EffectRule { name: "Guiding Bolt", attacks_against: ADV, once: true, ..NONE },
    EffectRule { name: "Haste", armor_class: 2, dexterity_saves: ADV, ..NONE },
    EffectRule { name: "Help", attacks: ADV, checks: ADV, once: true, ..NONE },
    EffectRule { name: "Mage Armor", unarmored: Some(13), ..NONE },
    EffectRule { name: "Rage", strength: ADV, resistances: WEAPONS, ..NONE },
    EffectRule { name: "Reckless Attack", attacks: ADV, attacks_against: ADV, ..NONE },
    EffectRule { name: "Resistance", save_die: 4, once: true, ..NONE },
    EffectRule { name: "Shield", armor_class: 5, ..NONE },
    EffectRule { name: "Shield of Faith", armor_class: 2, ..NONE },
];

/// The effect with this name, in any case. `Raging`, `Dodging` and `Helped` work, too.
#[must_use]
pub fn effect(name: &str) -> Option<&'static EffectRule> {
    let name = match name.trim() {
        n if same(n, "raging") => "Rage",
        n if same(n, "dodging") => "Dodge",
        n if same(n, "helped") => "Help",
        n if same(n, "reckless") => "Reckless Attack",
        n => n,
    };
    EFFECTS.iter().find(|e| same(e.name, name))
}
