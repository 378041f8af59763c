//! Input for participants.

use std::{collections::BTreeMap, fmt};

use entity::shapes;
use rules::{
    encounter::{NewCondition, NewParticipant},
    sheet::Condition,
};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use utoipa::ToSchema;

use super::ground::PositionInput;
use crate::rules::{sheet, values::AbilityName};

/// Somebody who takes part.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParticipantInput {
    /// Its id in the encounter; without one, the slug of its record.
    pub id: Option<String>,
    /// A character, by id or slug: takes part as its record stands. One that does not exist takes part as described here.
    pub character_id: Option<String>,
    /// An NPC, by id or slug: the same.
    pub npc_id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its side.
    #[serde(default)]
    pub is_enemy: bool,
    /// If it was rolled already.
    pub initiative: Option<i32>,
    /// Added to the roll; without it, what the sheet gives.
    pub initiative_bonus: Option<i32>,
    /// It does not act in the first round.
    #[serde(default)]
    pub surprised: bool,
    /// Only the game master knows of it, until it is revealed.
    #[serde(default)]
    pub hidden: bool,
    /// Where it stands; without positions, distances are not checked.
    pub position: Option<PositionInput>,
    /// Hit points; all unless given.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub hp: Option<i32>,
    /// Hit points at most.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_hp: Option<i32>,
    /// Temporary hit points.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub temp_hp: i32,
    /// 10 unless given.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub armor_class: Option<i32>,
    /// Feet a round; 30 unless given.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub speed: Option<i32>,
    /// `tiny`, `small`, `medium`, `large`, `huge` or `gargantuan`.
    pub size: Option<String>,
    /// Such as humanoid or undead.
    pub creature_type: Option<String>,
    /// The six scores by name.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub abilities: Option<shapes::Abilities>,
    /// Bonuses by ability.
    #[serde(default)]
    pub saving_throws: BTreeMap<String, i32>,
    /// Damage types it resists.
    #[serde(default)]
    pub resistances: Vec<String>,
    /// Damage types that do nothing to it.
    #[serde(default)]
    pub immunities: Vec<String>,
    /// Damage types that do it double damage.
    #[serde(default)]
    pub vulnerabilities: Vec<String>,
    /// Conditions it cannot have.
    #[serde(default)]
    pub condition_immunities: Vec<String>,
    /// Names, or objects that say more.
    #[serde(default)]
    pub conditions: Vec<ConditionInput>,
    /// Pools: {name, max, remaining}.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    #[serde(default)]
    pub resources: Vec<shapes::Resource>,
    /// Slots by level: `{"1": {"max": 2, "remaining": 2}}`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(default)]
    pub spell_slots: BTreeMap<String, shapes::SpellSlot>,
    /// Attacks of a stat block: `{name, bonus, damage, damage_type, reach_ft?, range?}`.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    #[serde(default)]
    #[schema(value_type = Vec<AttackInput>)]
    pub attacks: Vec<shapes::NpcAttack>,
    /// Such as `Darkvision`.
    #[serde(default)]
    pub features: Vec<String>,
    /// Attacks of one attack action.
    #[schema(minimum = 1, maximum = 10)]
    pub attacks_per_action: Option<i32>,
    /// Whether it dies at 0 hit points; an enemy without a record does.
    pub is_npc: Option<bool>,
}

/// An attack of a participant. `damage` is a sum of dice.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EncounterAttackInput)]
#[expect(dead_code, reason = "it describes `NpcAttack` where the rules check it")]
struct AttackInput {
    name: String,
    /// The bonus that is added to the roll.
    #[serde(default)]
    #[schema(minimum = -20, maximum = 30)]
    bonus: i32,
    damage: String,
    /// The damage type. It may also be at the end of `damage`.
    #[serde(default)]
    damage_type: String,
    reach_ft: Option<i32>,
    range: Option<shapes::Range>,
}

/// A condition: its name, or an object.
#[derive(Clone, Debug, ToSchema, JsonSchema)]
#[serde(untagged)]
pub enum ConditionInput {
    Name(String),
    Detail(ConditionDetailInput),
}

/// Implemented by hand, so that an error inside an object has a pointer to the wrong member.
impl<'de> Deserialize<'de> for ConditionInput {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ConditionInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a condition's name, or an object")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ConditionInput, E> {
                Ok(ConditionInput::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ConditionInput, A::Error> {
                ConditionDetailInput::deserialize(MapAccessDeserializer::new(map)).map(ConditionInput::Detail)
            }
        }
        from.deserialize_any(Either)
    }
}

/// A condition somebody brings along.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionDetailInput {
    /// The condition.
    name: String,
    /// What it comes from.
    #[serde(default)]
    source: Option<String>,
    /// Rounds it lasts.
    #[serde(default)]
    #[schema(minimum = 1)]
    rounds_remaining: Option<i32>,
    /// Of exhaustion.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 6)]
    level: Option<i32>,
    /// Whether a rest ends it.
    #[serde(default)]
    until_rest: bool,
    /// Difficulty of the save that ends it.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 40)]
    save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    save_ability: Option<AbilityName>,
    /// What it looks like.
    #[serde(default)]
    description: Option<String>,
}

impl From<&ParticipantInput> for NewParticipant {
    fn from(input: &ParticipantInput) -> Self {
        Self {
            id: input.id.clone().unwrap_or_default(),
            name: input.name.clone(),
            is_enemy: input.is_enemy,
            initiative: input.initiative,
            initiative_bonus: input.initiative_bonus,
            surprised: input.surprised,
            hidden: input.hidden,
            position: input.position.map(Into::into),
            attacks_per_action: input.attacks_per_action,
            is_npc: input.is_npc,
            hp: input.hp,
            max_hp: input.max_hp,
            temp_hp: input.temp_hp,
            armor_class: input.armor_class,
            speed: input.speed,
            size: input.size.clone(),
            creature_type: input.creature_type.clone(),
            abilities: input.abilities.as_ref().map(sheet::abilities),
            saving_throws: input.saving_throws.clone(),
            resistances: input.resistances.clone(),
            immunities: input.immunities.clone(),
            vulnerabilities: input.vulnerabilities.clone(),
            condition_immunities: input.condition_immunities.clone(),
            conditions: input.conditions.iter().map(Into::into).collect(),
            resources: input.resources.iter().cloned().map(sheet::resource).collect(),
            spell_slots: input
                .spell_slots
                .iter()
                .map(|(level, slot)| (level.clone(), sheet::slot_of(slot.clone())))
                .collect(),
            attacks: input.attacks.iter().cloned().map(sheet::attack).collect(),
            features: input.features.clone(),
            ..Self::default()
        }
    }
}

impl From<&ConditionInput> for NewCondition {
    fn from(input: &ConditionInput) -> Self {
        match input {
            ConditionInput::Name(name) => {
                Self { condition: Condition { name: name.clone(), ..Condition::default() }, ..Self::default() }
            }
            ConditionInput::Detail(it) => Self {
                condition: Condition {
                    name: it.name.clone(),
                    source: it.source.clone(),
                    rounds_remaining: it.rounds_remaining,
                    level: it.level,
                    until_rest: it.until_rest,
                },
                save_dc: it.save_dc,
                save_ability: it.save_ability.map(|a| a.0),
                description: it.description.clone(),
            },
        }
    }
}
