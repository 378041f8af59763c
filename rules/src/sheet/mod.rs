//! The sheet of a creature: what resolvers know of a character or an NPC.
//!
//! One type serves for both. A character's stored JSON can be read into it directly. For an NPC, the fields of its stat
//! block stand next to its own JSON, and `is_npc` is set. A sheet must never contain what the rules do not need (prompts,
//! owners, versions). Nothing in it is checked, because resolvers work with any numbers without failing. Empty values are
//! not written.
//!
//! - `parts`: the nested parts; `items`: things written as a name or in full; `names`: looking up features, effects and
//!   conditions.
//! - `numbers`: modifiers, proficiency, class levels; `defence`: armor class; `life`: hit points, dying and death.

#![warn(missing_docs)]

mod defence;
mod items;
mod life;
mod names;
mod null;
mod numbers;
mod parts;

use std::collections::BTreeMap;

use null::or_default;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use defence::ArmorClass;
pub use items::{Item, KnownSpell, OwnDamage, SpellSheet, Worn};
pub use life::{Life, Vitals};
pub(crate) use numbers::Training;
pub use parts::{
    Abilities, ActiveEffect, Concentration, Condition, DeathSaves, Feature, HitDice, NpcAttack, Range, Resource,
    SpellSlot, Weapon, WeaponAbility,
};

/// A character or an NPC as the rules see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RulesSheet)]
pub struct Creature {
    /// The id of its row. Changes name the creature by this, or by its name if this is empty.
    #[schema(required = true)]
    pub id: String,
    /// The slug in its campaign.
    #[serde(deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub slug: String,
    /// Name.
    #[schema(required = true)]
    pub name: String,
    /// Whether it is an NPC, with attacks from a stat block and death at 0 hit points.
    #[schema(required = true)]
    pub is_npc: bool,
    /// Race, as free text.
    #[serde(deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub race: String,
    /// Class or classes, as free text (`Rogue`, `Fighter 3 / Rogue 2`).
    #[serde(deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profession: String,
    /// Character level, 1 to 20.
    #[schema(required = true)]
    pub level: i32,
    /// The six scores.
    #[schema(required = true)]
    pub abilities: Abilities,
    /// Maximum hit points, before exhaustion.
    #[schema(required = true)]
    pub max_hp: i32,
    /// Hit points.
    #[schema(required = true)]
    pub hp: i32,
    /// Temporary hit points.
    #[schema(required = true)]
    pub temp_hp: i32,
    /// Armor class as written on the sheet: with armor, shield and Dexterity, without temporary effects.
    #[schema(required = true)]
    pub armor_class: i32,
    /// Speed in feet.
    #[schema(required = true)]
    pub speed: i32,
    /// One of [`crate::SIZES`].
    #[schema(required = true)]
    pub size: String,
    /// Creature type, such as `undead`, as free text.
    #[schema(required = true)]
    pub creature_type: String,
    /// `hostile`, `neutral`, `friendly`, as free text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disposition: String,
    /// Skills it is proficient in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skill_proficiencies: Vec<String>,
    /// Saving throws it is proficient in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saving_throw_proficiencies: Vec<String>,
    /// Weapons and groups of weapons it is proficient with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weapon_proficiencies: Vec<String>,
    /// Armor that it is proficient with, besides that of its class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub armor_proficiencies: Vec<String>,
    /// Class and racial features. A feature that is not listed has no effect. The strength of a feature follows from
    /// class and level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Feature>,
    /// Weapons of a character.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weapons: Vec<Weapon>,
    /// Attacks of an NPC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<NpcAttack>,
    /// Saving throw bonuses of an NPC, by ability.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub saving_throws: BTreeMap<String, i32>,
    /// Armor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub armor: Option<Worn>,
    /// Shield.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield: Option<Worn>,
    /// The ability that it casts with. Default: that of its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spellcasting_ability: Option<String>,
    /// Spells that it knows, with cantrips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spells: Vec<KnownSpell>,
    /// Spell slots by level.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spell_slots: BTreeMap<String, SpellSlot>,
    /// Class resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Active conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Active effects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<ActiveEffect>,
    /// What it is concentrating on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<Concentration>,
    /// Hit dice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_dice: Option<HitDice>,
    /// Death saving throws so far.
    #[schema(required = true)]
    pub death_saves: DeathSaves,
    /// Damage types it resists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resistances: Vec<String>,
    /// Damage types that it is immune to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub immunities: Vec<String>,
    /// Damage types that it is vulnerable to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vulnerabilities: Vec<String>,
    /// Conditions that it is immune to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub condition_immunities: Vec<String>,
    /// What it carries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<Item>,
    /// Features that can be used once, and the turn in which each was used (`sneak_attack`), or `rest` for once per
    /// long rest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub turn_flags: BTreeMap<String, String>,
}

impl Default for Creature {
    fn default() -> Self {
        Self {
            id: String::new(),
            slug: String::new(),
            name: String::new(),
            is_npc: false,
            race: String::new(),
            profession: String::new(),
            level: 1,
            abilities: Abilities::default(),
            max_hp: 10,
            hp: 10,
            temp_hp: 0,
            armor_class: 10,
            speed: 30,
            size: "medium".to_owned(),
            creature_type: "humanoid".to_owned(),
            disposition: String::new(),
            skill_proficiencies: Vec::new(),
            saving_throw_proficiencies: Vec::new(),
            weapon_proficiencies: Vec::new(),
            armor_proficiencies: Vec::new(),
            features: Vec::new(),
            weapons: Vec::new(),
            attacks: Vec::new(),
            saving_throws: BTreeMap::new(),
            armor: None,
            shield: None,
            spellcasting_ability: None,
            spells: Vec::new(),
            spell_slots: BTreeMap::new(),
            resources: Vec::new(),
            conditions: Vec::new(),
            effects: Vec::new(),
            concentration: None,
            hit_dice: None,
            death_saves: DeathSaves::default(),
            resistances: Vec::new(),
            immunities: Vec::new(),
            vulnerabilities: Vec::new(),
            condition_immunities: Vec::new(),
            inventory: Vec::new(),
            turn_flags: BTreeMap::new(),
        }
    }
}

impl Creature {
    /// How changes name it: by its id, or by its name if it has none.
    #[must_use]
    pub fn key(&self) -> &str {
        if self.id.is_empty() { &self.name } else { &self.id }
    }

    /// Whether `reference` is its id, slug or name.
    #[must_use]
    pub fn is_called(&self, reference: &str) -> bool {
        let names = [&self.id, &self.slug, &self.name];
        names.into_iter().any(|n| !n.is_empty() && crate::srd::same(n, reference))
    }
}
