//! The numbers of the twelve classes (SRD 5.1, "Classes").
//!
//! A character's sheet says which features it has. This module says how strong they are at its level.

use serde::Serialize;

use super::{Ability, ArmorCategory, Slots, lookup::holds};

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
pub enum Class {
    Barbarian,
    Bard,
    Cleric,
    Druid,
    Fighter,
    Monk,
    Paladin,
    Ranger,
    Rogue,
    Sorcerer,
    Warlock,
    Wizard,
}

/// A class's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClassRule {
    /// Which class.
    pub class: Class,
    /// Lower-case name.
    pub name: &'static str,
    /// Sides of its hit die.
    pub hit_die: u32,
    /// Saving throws it is proficient in.
    pub saves: [Ability; 2],
    /// The ability that it casts with.
    pub casting: Option<Ability>,
    /// How it gets spell slots.
    pub slots: Slots,
    /// Armor that it is proficient with.
    pub armor: &'static [ArmorCategory],
    /// Whether it is proficient with shields.
    pub shields: bool,
}

use Ability::{Charisma, Constitution, Dexterity, Intelligence, Strength, Wisdom};
use ArmorCategory::{Heavy, Light, Medium};

const ALL: &[ArmorCategory] = &[Light, Medium, Heavy];
const MIDDLE: &[ArmorCategory] = &[Light, Medium];

#[expect(clippy::too_many_arguments, reason = "one line of a table")]
const fn row(
    class: Class,
    name: &'static str,
    hit_die: u32,
    saves: [Ability; 2],
    casting: Option<Ability>,
    slots: Slots,
    armor: &'static [ArmorCategory],
    shields: bool,
) -> ClassRule {
    ClassRule { class, name, hit_die, saves, casting, slots, armor, shields }
}

/// All classes, in the order of [`Class`].
pub const CLASSES: [ClassRule; 12] = [
    row(Class::Barbarian, "barbarian", 12, [Strength, Constitution], None, Slots::None, MIDDLE, true),
    row(Class::Bard, "bard", 8, [Dexterity, Charisma], Some(Charisma), Slots::Full, &[Light], false),
    row(Class::Cleric, "cleric", 8, [Wisdom, Charisma], Some(Wisdom), Slots::Full, MIDDLE, true),
    row(Class::Druid, "druid", 8, [Intelligence, Wisdom], Some(Wisdom), Slots::Full, MIDDLE, true),
    row(Class::Fighter, "fighter", 10, [Strength, Constitution], None, Slots::None, ALL, true),
    row(Class::Monk, "monk", 8, [Strength, Dexterity], None, Slots::None, &[], false),
    row(Class::Paladin, "paladin", 10, [Wisdom, Charisma], Some(Charisma), Slots::Half, ALL, true),
    row(Class::Ranger, "ranger", 10, [Strength, Dexterity], Some(Wisdom), Slots::Half, MIDDLE, true),
    row(Class::Rogue, "rogue", 8, [Dexterity, Intelligence], None, Slots::None, &[Light], false),
    row(Class::Sorcerer, "sorcerer", 6, [Constitution, Charisma], Some(Charisma), Slots::Full, &[], false),
    row(Class::Warlock, "warlock", 8, [Wisdom, Charisma], Some(Charisma), Slots::Pact, &[Light], false),
    row(Class::Wizard, "wizard", 6, [Intelligence, Wisdom], Some(Intelligence), Slots::Full, &[], false),
];

impl Class {
    /// Its numbers.
    #[must_use]
    pub const fn rule(self) -> &'static ClassRule {
        &CLASSES[self as usize]
    }

    /// The classes in a profession, each with the level written after it: `Fighter 3 / Rogue 2` is two classes with
    /// levels, `Rogue (Thief)` one class without a level.
    pub fn of_profession(profession: &str) -> impl Iterator<Item = (Self, Option<i32>)> {
        profession.split(['/', ',', '&', '+', ';']).filter_map(|part| {
            let rule = CLASSES.iter().find(|c| holds(part, c.name))?;
            let digits = part.split(|c: char| !c.is_ascii_digit()).find(|d| !d.is_empty());
            Some((rule.class, digits.and_then(|d| d.parse().ok())))
        })
    }
}

/// The number of d6 of a rogue's Sneak Attack.
#[must_use]
pub fn sneak_attack_dice(level: i32) -> u32 {
    level.clamp(1, 20).unsigned_abs().div_ceil(2)
}

/// The damage that Rage adds to melee attacks with Strength.
#[must_use]
pub const fn rage_damage(level: i32) -> i32 {
    match level {
        ..=8 => 2,
        9..=15 => 3,
        _ => 4,
    }
}

/// How often a barbarian can rage between long rests; `None` means unlimited.
#[must_use]
pub const fn rage_uses(level: i32) -> Option<u32> {
    match level {
        ..=2 => Some(2),
        3..=5 => Some(3),
        6..=11 => Some(4),
        12..=16 => Some(5),
        17..=19 => Some(6),
        _ => None,
    }
}

/// The number of weapon dice that Brutal Critical adds.
#[must_use]
pub const fn brutal_critical_dice(level: i32) -> u32 {
    match level {
        ..=8 => 0,
        9..=12 => 1,
        13..=16 => 2,
        _ => 3,
    }
}

/// The sides of a monk's Martial Arts die.
#[must_use]
pub const fn martial_arts_die(level: i32) -> u32 {
    match level {
        ..=4 => 4,
        5..=10 => 6,
        11..=16 => 8,
        _ => 10,
    }
}

/// The sides of a Bardic Inspiration die.
#[must_use]
pub const fn bardic_inspiration_die(level: i32) -> u32 {
    match level {
        ..=4 => 6,
        5..=9 => 8,
        10..=14 => 10,
        _ => 12,
    }
}

/// The attacks that a class adds to its Attack action.
#[must_use]
pub const fn extra_attacks(class: Class, level: i32) -> u32 {
    match (class, level) {
        (Class::Fighter, 20..) => 3,
        (Class::Fighter, 11..) => 2,
        (Class::Fighter | Class::Barbarian | Class::Monk | Class::Paladin | Class::Ranger, 5..) => 1,
        _ => 0,
    }
}

/// A monk's ki points or a sorcerer's sorcery points: the level, from the second on.
#[must_use]
pub const fn points(level: i32) -> i32 {
    match level {
        ..=1 => 0,
        2..=20 => level,
        _ => 20,
    }
}

/// The hit points of a paladin's Lay on Hands.
#[must_use]
pub fn lay_on_hands_pool(level: i32) -> i32 {
    level.clamp(0, 20) * 5
}

/// How often a fighter can use Action Surge between rests.
#[must_use]
pub const fn action_surges(level: i32) -> u32 {
    match level {
        ..=1 => 0,
        2..=16 => 1,
        _ => 2,
    }
}

/// How often a fighter can use Indomitable between long rests.
#[must_use]
pub const fn indomitable_uses(level: i32) -> u32 {
    match level {
        ..=8 => 0,
        9..=12 => 1,
        13..=16 => 2,
        _ => 3,
    }
}
