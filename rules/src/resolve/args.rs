//! The circumstances of a roll that only the caller knows.

use serde::{Deserialize, Serialize};

use crate::srd::Advantage;

/// The cover between attacker and target (SRD 5.1, "Cover"). Only the best cover counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cover {
    /// Nothing.
    #[default]
    None,
    /// +2 to armor class and Dexterity saves.
    Half,
    /// +5 to armor class and Dexterity saves.
    ThreeQuarters,
    /// The creature cannot be targeted.
    Total,
}

impl Cover {
    /// The bonus to armor class and Dexterity saving throws.
    #[must_use]
    pub const fn bonus(self) -> i32 {
        match self {
            Self::Half => 2,
            Self::ThreeQuarters => 5,
            Self::None | Self::Total => 0,
        }
    }
}

/// What is in the other hand: whether it holds a weapon, or which one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OtherWeapon {
    /// Whether it holds a weapon.
    Held(bool),
    /// The weapon's name.
    Named(String),
}

impl OtherWeapon {
    /// Whether the other hand holds a weapon.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match self {
            Self::Held(held) => *held,
            Self::Named(name) => !name.trim().is_empty(),
        }
    }
}

/// What depends on the place and the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// An enemy of the target that can act is within 5 feet of it.
    pub ally_adjacent: bool,
    /// Somebody hostile to the attacker that can see and act is within 5 feet of the attacker.
    pub hostile_adjacent: bool,
    /// The target does not see the attacker.
    pub attacker_unseen: bool,
    /// The attacker does not see the target.
    pub target_unseen: bool,
    /// A frightened creature sees the source of its fear.
    pub fear_source_visible: bool,
    /// This is the bonus attack with the weapon in the other hand.
    pub off_hand: bool,
    /// What is in the other hand.
    pub other_weapon: Option<OtherWeapon>,
    /// Feet between attacker and target. Default: adjacent for melee, within normal range otherwise.
    pub distance_ft: Option<i32>,
    /// A name for the turn, so that features that work once per turn are used once.
    #[serde(deserialize_with = "text_or_number")]
    pub turn_key: Option<String>,
    /// The check needs sight.
    pub sight_needed: bool,
    /// The check needs hearing.
    pub hearing_needed: bool,
    /// The fight is under water.
    pub underwater: bool,
    /// The attacker rides, and can hold a lance in one hand.
    pub mounted: bool,
    /// A melee attack that drops its target knocks it out instead of killing it.
    pub knock_out: bool,
    /// Reactions that the target takes: `Uncanny Dodge`.
    pub reactions: Vec<String>,
    /// The bonus of a paladin's aura that protects the creature that saves.
    pub aura_of_protection: Option<i32>,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            ally_adjacent: false,
            hostile_adjacent: false,
            attacker_unseen: false,
            target_unseen: false,
            fear_source_visible: true,
            off_hand: false,
            other_weapon: None,
            distance_ft: None,
            turn_key: None,
            sight_needed: false,
            hearing_needed: false,
            underwater: false,
            mounted: false,
            knock_out: false,
            reactions: Vec::new(),
            aura_of_protection: None,
        }
    }
}

/// What every resolver takes besides its own arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circumstances {
    /// Added to the sources of advantage and disadvantage that the rules find.
    pub advantage: Advantage,
    /// The cover of the target, or of the creature that makes a Dexterity saving throw.
    pub cover: Cover,
    /// The place and the moment.
    pub context: Context,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TurnKey {
    Text(String),
    Number(i64),
}

fn text_or_number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<TurnKey>::deserialize(from)?.map(|key| match key {
        TurnKey::Text(text) => text,
        TurnKey::Number(number) => number.to_string(),
    }))
}
