//! Things that a sheet contains as a name or in full: armor, items, spells.

use serde::{Deserialize, Serialize, de::IgnoredAny};
use utoipa::ToSchema;

use super::{null::or_default, parts::Range};
use crate::srd::{OnSave, SpellKind};

/// Armor or a shield.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(from = "WornInput")]
#[schema(as = SheetArmor)]
pub struct Worn {
    /// Its name; empty if nothing is worn.
    pub name: String,
    /// Magic bonus.
    pub bonus: i32,
    /// Whether its wearer is proficient with it. Default: as class and sheet say.
    #[schema(required = true)]
    pub proficient: Option<bool>,
}

/// The forms in which it may be written.
#[derive(Deserialize)]
#[serde(untagged)]
enum WornInput {
    Name(String),
    Flag(bool),
    Full {
        #[serde(default, deserialize_with = "or_default")]
        name: String,
        #[serde(default, deserialize_with = "or_default")]
        bonus: i32,
        #[serde(default)]
        proficient: Option<bool>,
    },
    Other(IgnoredAny),
}

impl From<WornInput> for Worn {
    fn from(input: WornInput) -> Self {
        match input {
            WornInput::Name(name) => Self { name, ..Self::default() },
            WornInput::Flag(true) => Self { name: "shield".to_owned(), ..Self::default() },
            WornInput::Full { name, bonus, proficient } => {
                let name = if name.is_empty() { "worn".to_owned() } else { name };
                Self { name, bonus, proficient }
            }
            WornInput::Flag(false) | WornInput::Other(_) => Self::default(),
        }
    }
}

/// A carried item.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(from = "ItemInput")]
#[schema(as = SheetItem)]
pub struct Item {
    /// Name.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ItemInput {
    Name(String),
    Full { name: String },
    Other(IgnoredAny),
}

impl From<ItemInput> for Item {
    fn from(input: ItemInput) -> Self {
        match input {
            ItemInput::Name(name) | ItemInput::Full { name } => Self { name },
            ItemInput::Other(_) => Self::default(),
        }
    }
}

/// A known spell: the name of an SRD spell, or a custom one with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, from = "SpellInput")]
#[schema(as = SheetSpell)]
pub enum KnownSpell {
    /// By name.
    Name(String),
    /// In full.
    Own(Box<SpellSheet>),
}

/// A spell that cannot be read in full keeps its name, so that one odd spell does not make the sheet unreadable.
#[derive(Deserialize)]
#[serde(untagged)]
enum SpellInput {
    Name(String),
    Own(Box<SpellSheet>),
    Loose { name: String },
    Other(IgnoredAny),
}

impl From<SpellInput> for KnownSpell {
    fn from(input: SpellInput) -> Self {
        match input {
            SpellInput::Name(name) | SpellInput::Loose { name } => Self::Name(name),
            SpellInput::Own(spell) => Self::Own(spell),
            SpellInput::Other(_) => Self::Name(String::new()),
        }
    }
}

impl KnownSpell {
    /// The spell's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Own(spell) => &spell.name,
        }
    }
}

/// A custom spell. If it has no numbers and there is no SRD spell with its name, casting it only spends the slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = SheetSpellDetail)]
pub struct SpellSheet {
    /// Name.
    #[schema(required = true)]
    pub name: String,
    /// 0 for a cantrip, otherwise 1 to 9.
    #[schema(required = true)]
    pub level: i32,
    /// `ranged`, `melee`, `save`, `healing` or `automatic`. With anything else the other fields decide.
    #[schema(required = true)]
    pub attack: String,
    /// The ability of the target's saving throw.
    #[serde(alias = "save", alias = "save_ability")]
    #[schema(required = true)]
    pub save_ability: Option<String>,
    /// How much of the damage a successful save leaves.
    #[schema(required = true)]
    pub on_save: OnSave,
    /// The dice of its damage or healing.
    #[serde(alias = "dice", alias = "damage_roll")]
    #[schema(required = true)]
    pub damage: Option<OwnDamage>,
    /// Damage type.
    #[schema(required = true)]
    pub damage_type: Option<String>,
    /// Dice added for each slot level above its own.
    #[serde(alias = "upcast_scaling")]
    #[schema(required = true)]
    pub upcast: Option<String>,
    /// Range in feet. Default: 60 for a ranged attack.
    #[serde(alias = "range")]
    #[schema(required = true)]
    pub range_ft: Option<i32>,
    /// Its casting time, such as `1 bonus action`. Default: an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub casting_time: Option<String>,
    /// Whether it requires concentration.
    #[schema(required = true)]
    pub concentration: bool,
    /// The condition that it puts on its target.
    #[schema(required = true)]
    pub condition: Option<String>,
    /// The effect that it puts on its target.
    #[schema(required = true)]
    pub effect: Option<String>,
}

/// The dice of a custom spell: a text, or an object with the damage type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(from = "OwnDamageInput")]
#[schema(as = SheetSpellDamage)]
pub struct OwnDamage {
    /// A sum of dice and a number.
    pub dice: String,
    /// Damage type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub damage_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OwnDamageInput {
    Text(String),
    Full {
        dice: String,
        #[serde(default, rename = "type", alias = "damage_type")]
        damage_type: Option<String>,
    },
}

impl From<OwnDamageInput> for OwnDamage {
    fn from(input: OwnDamageInput) -> Self {
        match input {
            OwnDamageInput::Text(dice) => Self { dice, damage_type: None },
            OwnDamageInput::Full { dice, damage_type } => Self { dice, damage_type },
        }
    }
}

impl SpellSheet {
    /// How it reaches its target.
    #[must_use]
    pub fn kind(&self) -> SpellKind {
        match self.attack.to_ascii_lowercase().as_str() {
            "ranged" => SpellKind::Ranged,
            "melee" => SpellKind::Melee,
            "save" => SpellKind::Save,
            "healing" => SpellKind::Healing,
            "automatic" | "auto" => SpellKind::Automatic,
            _ if self.save_ability.is_some() => SpellKind::Save,
            _ if self.damage.is_some() => SpellKind::Automatic,
            _ => SpellKind::Effect,
        }
    }

    /// Its range in the form of a weapon's.
    #[must_use]
    pub fn range(&self) -> Option<Range> {
        self.range_ft.map(|normal| Range { normal, long: None })
    }
}
