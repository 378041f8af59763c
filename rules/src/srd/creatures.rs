//! Stat blocks of creatures (SRD 5.1, "Monsters" and "Nonplayer Characters"): what a fight rolls with.
//!
//! A row has the numbers and the names of features. What an attack does besides its damage (a wolf's bite knocks prone) is not in it; the
//! game master adds it.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{Ability, same};

/// A creature's stat block. Its members are those of a participant that joins a fight, but for `challenge_rating` and `hit_dice`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SrdCreature)]
pub struct CreatureRule {
    /// Name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// `0`, `1/8`, `1/4`, `1/2`, or a whole number.
    #[schema(value_type = String)]
    pub challenge_rating: &'static str,
    /// One of `rules::SIZES`.
    #[schema(value_type = String)]
    pub size: &'static str,
    /// Such as beast or undead.
    #[schema(value_type = String)]
    pub creature_type: &'static str,
    /// Armor class, with its armor and shield.
    pub armor_class: i32,
    /// Hit points, on average.
    pub max_hp: i32,
    /// The dice of which `max_hp` is the average.
    #[schema(value_type = String)]
    pub hit_dice: &'static str,
    /// Walking speed in feet.
    pub speed: i32,
    /// The six scores by name, here in the order of [`Ability::ALL`].
    #[serde(serialize_with = "by_name")]
    #[schema(value_type = std::collections::BTreeMap<String, i32>)]
    pub abilities: [i32; 6],
    /// Whole bonuses of the saving throws that differ from the ability's modifier, by ability.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, i32>)]
    pub saving_throws: &'static [(&'static str, i32)],
    /// Damage types that it is vulnerable to.
    #[schema(value_type = Vec<String>)]
    pub vulnerabilities: &'static [&'static str],
    /// Damage types that it is immune to.
    #[schema(value_type = Vec<String>)]
    pub immunities: &'static [&'static str],
    /// Conditions that it cannot have.
    #[schema(value_type = Vec<String>)]
    pub condition_immunities: &'static [&'static str],
    /// Attacks, the usual one first.
    #[schema(value_type = Vec<CreatureAttack>)]
    pub attacks: &'static [CreatureAttack],
    /// Attacks of one attack action (Multiattack).
    pub attacks_per_action: i32,
    /// Names of features and senses.
    #[schema(value_type = Vec<String>)]
    pub features: &'static [&'static str],
}

/// An attack of a stat block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdCreatureAttack)]
pub struct CreatureAttack {
    /// Name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// The whole bonus to the attack roll.
    pub bonus: i32,
    /// A sum of dice.
    #[schema(value_type = String)]
    pub damage: &'static str,
    /// Damage type.
    #[schema(value_type = String)]
    pub damage_type: &'static str,
    /// Reach in feet; null if it can only be shot.
    #[schema(required = true)]
    pub reach_ft: Option<i32>,
    /// Range in feet, if it can be shot or thrown.
    #[schema(required = true)]
    pub range: Option<CreatureRange>,
}

/// How far something can be shot or thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdCreatureRange)]
pub struct CreatureRange {
    /// Feet without disadvantage.
    pub normal: i32,
    /// Feet at most.
    pub long: i32,
}

fn as_map<S: Serializer>(saves: &&'static [(&'static str, i32)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(saves.iter().map(|(ability, bonus)| (ability, bonus)))
}

fn by_name<S: Serializer>(scores: &[i32; 6], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Ability::ALL.into_iter().map(Ability::name).zip(scores))
}

/// Finds a creature by its name, in any case.
#[must_use]
pub fn creature(name: &str) -> Option<&'static CreatureRule> {
    CREATURES.iter().find(|creature| same(creature.name, name))
}

const fn melee(name: &'static str, bonus: i32, damage: &'static str, damage_type: &'static str) -> CreatureAttack {
    CreatureAttack { name, bonus, damage, damage_type, reach_ft: Some(5), range: None }
}

const fn thrown(attack: CreatureAttack, normal: i32, long: i32) -> CreatureAttack {
    CreatureAttack { range: Some(CreatureRange { normal, long }), ..attack }
}

const fn shot(attack: CreatureAttack, normal: i32, long: i32) -> CreatureAttack {
    CreatureAttack { reach_ft: None, range: Some(CreatureRange { normal, long }), ..attack }
}

const B: &str = "bludgeoning";
const P: &str = "piercing";
const S: &str = "slashing";
const DARKVISION: &str = "Darkvision";

/// A commoner, from which the other rows differ.
const COMMONER: CreatureRule = CreatureRule {
    name: "Commoner",
    challenge_rating: "0",
    size: "medium",
    creature_type: "humanoid",
    armor_class: 10,
    max_hp: 4,
    hit_dice: "1d8",
    speed: 30,
    abilities: [10, 10, 10, 10, 10, 10],
    saving_throws: &[],
    vulnerabilities: &[],
    immunities: &[],
    condition_immunities: &[],
    attacks: &[melee("Club", 2, "1d4", B)],
    attacks_per_action: 1,
    features: &[],
};

/// Twenty creatures that a first campaign meets, by name.
pub const CREATURES: [CreatureRule; 20] = [
    CreatureRule {
        name: "Bandit",
        challenge_rating: "1/8",
        armor_class: 12,
        max_hp: 11,
        hit_dice: "2d8+2",
        abilities: [11, 12, 12, 10, 10, 10],
        attacks: &[melee("Scimitar", 3, "1d6+1", S), shot(melee("Light Crossbow", 3, "1d8+1", P), 80, 320)],
        ..COMMONER
    },
    CreatureRule {
        name: "Bandit Captain",
        challenge_rating: "2",
        armor_class: 15,
        max_hp: 65,
        hit_dice: "10d8+20",
        abilities: [15, 16, 14, 14, 11, 14],
        saving_throws: &[("strength", 4), ("dexterity", 5), ("wisdom", 2)],
        attacks: &[melee("Scimitar", 5, "1d6+3", S), thrown(melee("Dagger", 5, "1d4+3", P), 20, 60)],
        attacks_per_action: 3,
        features: &["Parry"],
        ..COMMONER
    },
    CreatureRule {
        name: "Black Bear",
        challenge_rating: "1/2",
        creature_type: "beast",
        armor_class: 11,
        max_hp: 19,
        hit_dice: "3d8+6",
        speed: 40,
        abilities: [15, 10, 14, 2, 12, 7],
        attacks: &[melee("Bite", 3, "1d6+2", P), melee("Claws", 3, "2d4+2", S)],
        attacks_per_action: 2,
        features: &["Keen Smell"],
        ..COMMONER
    },
    CreatureRule {
        name: "Bugbear",
        challenge_rating: "1",
        armor_class: 16,
        max_hp: 27,
        hit_dice: "5d8+5",
        abilities: [15, 14, 13, 8, 11, 9],
        attacks: &[melee("Morningstar", 4, "2d8+2", P), thrown(melee("Javelin", 4, "2d6+2", P), 30, 120)],
        features: &[DARKVISION, "Brute", "Surprise Attack"],
        ..COMMONER
    },
    COMMONER,
    CreatureRule {
        name: "Cultist",
        challenge_rating: "1/8",
        armor_class: 12,
        max_hp: 9,
        hit_dice: "2d8",
        abilities: [11, 12, 10, 10, 11, 10],
        attacks: &[melee("Scimitar", 3, "1d6+1", S)],
        features: &["Dark Devotion"],
        ..COMMONER
    },
    CreatureRule {
        name: "Dire Wolf",
        challenge_rating: "1",
        size: "large",
        creature_type: "beast",
        armor_class: 14,
        max_hp: 37,
        hit_dice: "5d10+10",
        speed: 50,
        abilities: [17, 15, 15, 3, 12, 7],
        attacks: &[melee("Bite", 5, "2d6+3", P)],
        features: &["Keen Hearing and Smell", "Pack Tactics"],
        ..COMMONER
    },
    CreatureRule {
        name: "Ghoul",
        challenge_rating: "1",
        creature_type: "undead",
        armor_class: 12,
        max_hp: 22,
        hit_dice: "5d8",
        abilities: [13, 15, 10, 7, 10, 6],
        immunities: &["poison"],
        condition_immunities: &["charmed", "exhaustion", "poisoned"],
        attacks: &[melee("Bite", 2, "2d6+2", P), melee("Claws", 4, "2d4+2", S)],
        features: &[DARKVISION],
        ..COMMONER
    },
    CreatureRule {
        name: "Giant Rat",
        challenge_rating: "1/8",
        size: "small",
        creature_type: "beast",
        armor_class: 12,
        max_hp: 7,
        hit_dice: "2d6",
        abilities: [7, 15, 11, 2, 10, 4],
        attacks: &[melee("Bite", 4, "1d4+2", P)],
        features: &[DARKVISION, "Keen Smell", "Pack Tactics"],
        ..COMMONER
    },
    CreatureRule {
        name: "Giant Spider",
        challenge_rating: "1",
        size: "large",
        creature_type: "beast",
        armor_class: 14,
        max_hp: 26,
        hit_dice: "4d10+4",
        abilities: [14, 16, 12, 2, 11, 4],
        attacks: &[melee("Bite", 5, "1d8+3", P)],
        features: &[DARKVISION, "Blindsight", "Spider Climb", "Web Sense", "Web Walker"],
        ..COMMONER
    },
    CreatureRule {
        name: "Goblin",
        challenge_rating: "1/4",
        size: "small",
        armor_class: 15,
        max_hp: 7,
        hit_dice: "2d6",
        abilities: [8, 14, 10, 10, 8, 8],
        attacks: &[melee("Scimitar", 4, "1d6+2", S), shot(melee("Shortbow", 4, "1d6+2", P), 80, 320)],
        features: &[DARKVISION, "Nimble Escape"],
        ..COMMONER
    },
    CreatureRule {
        name: "Guard",
        challenge_rating: "1/8",
        armor_class: 16,
        max_hp: 11,
        hit_dice: "2d8+2",
        abilities: [13, 12, 12, 10, 11, 10],
        attacks: &[thrown(melee("Spear", 3, "1d6+1", P), 20, 60)],
        ..COMMONER
    },
    CreatureRule {
        name: "Hobgoblin",
        challenge_rating: "1/2",
        armor_class: 18,
        max_hp: 11,
        hit_dice: "2d8+2",
        abilities: [13, 12, 12, 10, 10, 9],
        attacks: &[melee("Longsword", 3, "1d8+1", S), shot(melee("Longbow", 3, "1d8+1", P), 150, 600)],
        features: &[DARKVISION, "Martial Advantage"],
        ..COMMONER
    },
    CreatureRule {
        name: "Kobold",
        challenge_rating: "1/8",
        size: "small",
        armor_class: 12,
        max_hp: 5,
        hit_dice: "2d6-2",
        abilities: [7, 15, 9, 8, 7, 8],
        attacks: &[melee("Dagger", 4, "1d4+2", P), shot(melee("Sling", 4, "1d4+2", B), 30, 120)],
        features: &[DARKVISION, "Sunlight Sensitivity", "Pack Tactics"],
        ..COMMONER
    },
    CreatureRule {
        name: "Ogre",
        challenge_rating: "2",
        size: "large",
        creature_type: "giant",
        armor_class: 11,
        max_hp: 59,
        hit_dice: "7d10+21",
        speed: 40,
        abilities: [19, 8, 16, 5, 7, 7],
        attacks: &[melee("Greatclub", 6, "2d8+4", B), thrown(melee("Javelin", 6, "2d6+4", P), 30, 120)],
        features: &[DARKVISION],
        ..COMMONER
    },
    CreatureRule {
        name: "Orc",
        challenge_rating: "1/2",
        armor_class: 13,
        max_hp: 15,
        hit_dice: "2d8+6",
        abilities: [16, 12, 16, 7, 11, 10],
        attacks: &[melee("Greataxe", 5, "1d12+3", S), thrown(melee("Javelin", 5, "1d6+3", P), 30, 120)],
        features: &[DARKVISION, "Aggressive"],
        ..COMMONER
    },
    CreatureRule {
        name: "Skeleton",
        challenge_rating: "1/4",
        creature_type: "undead",
        armor_class: 13,
        max_hp: 13,
        hit_dice: "2d8+4",
        abilities: [10, 14, 15, 6, 8, 5],
        vulnerabilities: &[B],
        immunities: &["poison"],
        condition_immunities: &["exhaustion", "poisoned"],
        attacks: &[melee("Shortsword", 4, "1d6+2", P), shot(melee("Shortbow", 4, "1d6+2", P), 80, 320)],
        features: &[DARKVISION],
        ..COMMONER
    },
    CreatureRule {
        name: "Thug",
        challenge_rating: "1/2",
        armor_class: 11,
        max_hp: 32,
        hit_dice: "5d8+10",
        abilities: [15, 11, 14, 10, 10, 11],
        attacks: &[melee("Mace", 4, "1d6+2", B), shot(melee("Heavy Crossbow", 2, "1d10", P), 100, 400)],
        attacks_per_action: 2,
        features: &["Pack Tactics"],
        ..COMMONER
    },
    CreatureRule {
        name: "Wolf",
        challenge_rating: "1/4",
        creature_type: "beast",
        armor_class: 13,
        max_hp: 11,
        hit_dice: "2d8+2",
        speed: 40,
        abilities: [12, 15, 12, 3, 12, 6],
        attacks: &[melee("Bite", 4, "2d4+2", P)],
        features: &["Keen Hearing and Smell", "Pack Tactics"],
        ..COMMONER
    },
    CreatureRule {
        name: "Zombie",
        challenge_rating: "1/4",
        creature_type: "undead",
        armor_class: 8,
        max_hp: 22,
        hit_dice: "3d8+9",
        speed: 20,
        abilities: [13, 6, 16, 3, 6, 5],
        saving_throws: &[("wisdom", 0)],
        immunities: &["poison"],
        condition_immunities: &["poisoned"],
        attacks: &[melee("Slam", 3, "1d6+1", B)],
        features: &[DARKVISION, "Undead Fortitude"],
        ..COMMONER
    },
];
