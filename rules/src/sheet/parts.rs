//! The nested shapes of a sheet, as they stand in JSON.

use serde::{Deserialize, Serialize};

use crate::srd::Ability;

/// The six ability scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Abilities {
    pub strength: i32,
    pub dexterity: i32,
    pub constitution: i32,
    pub intelligence: i32,
    pub wisdom: i32,
    pub charisma: i32,
}

impl Default for Abilities {
    fn default() -> Self {
        Self { strength: 10, dexterity: 10, constitution: 10, intelligence: 10, wisdom: 10, charisma: 10 }
    }
}

impl Abilities {
    /// The score of an ability.
    #[must_use]
    pub const fn score(&self, ability: Ability) -> i32 {
        match ability {
            Ability::Strength => self.strength,
            Ability::Dexterity => self.dexterity,
            Ability::Constitution => self.constitution,
            Ability::Intelligence => self.intelligence,
            Ability::Wisdom => self.wisdom,
            Ability::Charisma => self.charisma,
        }
    }
}

/// A feature of class or race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feature {
    /// Name.
    pub name: String,
    /// The level it came with.
    pub level: Option<i32>,
    /// What was chosen: a fighting style, the skills of Expertise.
    pub chosen_option: Option<String>,
    /// Dice or number it adds to damage: `3d6`, `+10`, `ceil(level/2)d6`, `1d6 necrotic`.
    pub scaling_formula: Option<String>,
}

/// Normal and long range in feet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Range {
    /// Up to here without disadvantage.
    pub normal: i32,
    /// Up to here at all; none: the normal range.
    pub long: Option<i32>,
}

/// The ability a weapon uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeaponAbility {
    /// Strength.
    Str,
    /// Dexterity.
    Dex,
    /// The better of both; Strength when they are equal.
    Finesse,
    /// No ability at all.
    None,
}

/// A weapon; what is left out comes from the SRD weapon of its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weapon {
    /// Name.
    pub name: String,
    /// Damage dice.
    pub dice: Option<String>,
    /// Damage dice with two hands.
    pub versatile_dice: Option<String>,
    /// Damage type.
    pub damage_type: Option<String>,
    /// The ability it uses.
    pub ability: Option<WeaponAbility>,
    /// Magic bonus on attack and damage; 0 leaves the one in the name (`+1 longsword`).
    pub bonus: i32,
    /// Properties, such as `finesse`; `magical` makes its damage magical.
    pub properties: Vec<String>,
    /// Range, if it can be shot or thrown.
    pub range: Option<Range>,
}

/// An effect in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActiveEffect {
    /// Name, such as `Bless`.
    pub name: String,
    /// Who or what it comes from.
    pub source: Option<String>,
    /// Rounds until it ends.
    pub rounds_remaining: Option<i32>,
}

/// A condition in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Name, such as `prone`.
    pub name: String,
    /// Who or what it comes from.
    pub source: Option<String>,
    /// Rounds until it ends.
    pub rounds_remaining: Option<i32>,
    /// Level, of exhaustion.
    pub level: Option<i32>,
    /// Whether the next rest ends it, short or long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_rest: bool,
}

/// What a creature concentrates on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Concentration {
    /// The spell.
    pub spell: String,
}

/// Hit dice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HitDice {
    /// Sides of the die.
    pub die: i32,
    /// How many there are.
    pub max: i32,
    /// How many are left.
    pub remaining: i32,
}

/// Death saving throws so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeathSaves {
    /// Successes; with three it is stable.
    pub successes: i32,
    /// Failures; with three it is dead.
    pub failures: i32,
}

/// Spell slots of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpellSlot {
    /// How many there are.
    pub max: i32,
    /// How many are left.
    pub remaining: i32,
}

/// A class resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// Name, such as `Ki Points`.
    pub name: String,
    /// How many there are.
    pub max: i32,
    /// How many are left.
    pub remaining: i32,
}

/// An attack of a stat block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NpcAttack {
    /// Name.
    pub name: String,
    /// Everything added to the attack roll.
    pub bonus: i32,
    /// Damage: a sum of dice and a number.
    pub damage: String,
    /// Damage type.
    pub damage_type: String,
    /// Reach in feet; none: 5, or a ranged attack when there is a range.
    pub reach_ft: Option<i32>,
    /// Range, if it can be shot or thrown.
    pub range: Option<Range>,
}
