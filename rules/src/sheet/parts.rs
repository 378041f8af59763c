//! The nested parts of a sheet, as in its JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::srd::Ability;

/// The six ability scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = SheetAbilities)]
pub struct Abilities {
    #[schema(required = true)]
    pub strength: i32,
    #[schema(required = true)]
    pub dexterity: i32,
    #[schema(required = true)]
    pub constitution: i32,
    #[schema(required = true)]
    pub intelligence: i32,
    #[schema(required = true)]
    pub wisdom: i32,
    #[schema(required = true)]
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

/// A class or racial feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetFeature)]
pub struct Feature {
    /// Name.
    #[schema(required = true)]
    pub name: String,
    /// The level at which it was gained.
    #[schema(required = true)]
    pub level: Option<i32>,
    /// The chosen option, such as a fighting style or the skills of Expertise.
    #[schema(required = true)]
    pub chosen_option: Option<String>,
    /// Dice or a number that it adds to damage: `3d6`, `+10`, `ceil(level/2)d6`, `1d6 necrotic`.
    #[schema(required = true)]
    pub scaling_formula: Option<String>,
}

/// Normal and long range in feet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetRange)]
pub struct Range {
    /// The range without disadvantage.
    #[schema(required = true)]
    pub normal: i32,
    /// The maximum range. Default: the normal range.
    #[schema(required = true)]
    pub long: Option<i32>,
}

/// The ability that a weapon uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SheetWeaponAbility)]
pub enum WeaponAbility {
    /// Strength.
    Str,
    /// Dexterity.
    Dex,
    /// The better of both; Strength if they are equal.
    Finesse,
    /// No ability.
    None,
}

/// A weapon. What is left out comes from the SRD weapon with its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetWeapon)]
pub struct Weapon {
    /// Name.
    #[schema(required = true)]
    pub name: String,
    /// Damage dice.
    #[schema(required = true)]
    pub dice: Option<String>,
    /// Damage dice when used with two hands.
    #[schema(required = true)]
    pub versatile_dice: Option<String>,
    /// Damage type.
    #[schema(required = true)]
    pub damage_type: Option<String>,
    /// The ability that it uses.
    #[schema(required = true)]
    pub ability: Option<WeaponAbility>,
    /// Magic bonus to attack and damage. With 0, a bonus in the name (`+1 longsword`) counts.
    #[schema(required = true)]
    pub bonus: i32,
    /// Properties, such as `finesse`. `magical` makes its damage magical; `silvered` and `adamantine` overcome what resists other
    /// weapons. A list of such marks alone does not replace the properties of the SRD weapon.
    #[schema(required = true)]
    pub properties: Vec<String>,
    /// Range, if it can be shot or thrown.
    #[schema(required = true)]
    pub range: Option<Range>,
}

/// An active effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetActiveEffect)]
pub struct ActiveEffect {
    /// Name, such as `Bless`.
    #[schema(required = true)]
    pub name: String,
    /// Its source.
    #[schema(required = true)]
    pub source: Option<String>,
    /// Rounds until it ends.
    #[schema(required = true)]
    pub rounds_remaining: Option<i32>,
}

/// An active condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetCondition)]
pub struct Condition {
    /// Name, such as `prone`.
    #[schema(required = true)]
    pub name: String,
    /// Its source.
    #[schema(required = true)]
    pub source: Option<String>,
    /// Rounds until it ends.
    #[schema(required = true)]
    pub rounds_remaining: Option<i32>,
    /// The level of exhaustion.
    #[schema(required = true)]
    pub level: Option<i32>,
    /// Whether the next short or long rest ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_rest: bool,
}

/// What a creature is concentrating on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetConcentration)]
pub struct Concentration {
    /// The spell.
    #[schema(required = true)]
    pub spell: String,
}

/// Hit dice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetHitDice)]
pub struct HitDice {
    /// Sides of the die.
    #[schema(required = true)]
    pub die: i32,
    /// The maximum number.
    #[schema(required = true)]
    pub max: i32,
    /// The number left.
    #[schema(required = true)]
    pub remaining: i32,
}

/// Death saving throws so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetDeathSaves)]
pub struct DeathSaves {
    /// Successes. Three make it stable.
    #[schema(required = true)]
    pub successes: i32,
    /// Failures. Three kill it.
    #[schema(required = true)]
    pub failures: i32,
}

/// Spell slots of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetSpellSlot)]
pub struct SpellSlot {
    /// The maximum number.
    #[schema(required = true)]
    pub max: i32,
    /// The number left.
    #[schema(required = true)]
    pub remaining: i32,
}

/// A class resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetResource)]
pub struct Resource {
    /// Name, such as `Ki Points`.
    #[schema(required = true)]
    pub name: String,
    /// The maximum amount.
    #[schema(required = true)]
    pub max: i32,
    /// The amount left.
    #[schema(required = true)]
    pub remaining: i32,
}

/// An attack in a stat block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetNpcAttack)]
pub struct NpcAttack {
    /// Name.
    #[schema(required = true)]
    pub name: String,
    /// The whole bonus to the attack roll.
    #[schema(required = true)]
    pub bonus: i32,
    /// Damage: a sum of dice and a number.
    #[schema(required = true)]
    pub damage: String,
    /// Damage type.
    #[schema(required = true)]
    pub damage_type: String,
    /// Reach in feet. Default: 5, or a ranged attack if there is a range.
    #[schema(required = true)]
    pub reach_ft: Option<i32>,
    /// Range, if it can be shot or thrown.
    #[schema(required = true)]
    pub range: Option<Range>,
}
