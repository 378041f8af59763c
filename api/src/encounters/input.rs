//! What clients and models write of encounters: the arguments of the tools, and the bodies of their REST twins.
//!
//! Limits are the rules' own (`rules::encounter::limits`); here is only the shape.

use std::{collections::BTreeMap, fmt};

use entity::shapes;
use rules::{
    encounter::{
        Action, ActionKind, Cost, Duration, EndOutcome, Hazard, Lighting, NewCondition, NewParticipant, Position,
        Square, Terrain, Verbosity,
    },
    resolve::{Advantage, AttackArgs, Circumstances, Cover, DamagePart},
    sheet::Condition,
};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use utoipa::ToSchema;

use crate::{
    rules::sheet,
    tools::resolve::{
        ContextInput,
        values::{AbilityName, UpTo, Within, Words, or_default},
    },
};

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
    /// Where it stands; without positions, distances are not checked.
    pub position: Option<PositionInput>,
    /// Hit points; all unless given.
    pub hp: Option<i32>,
    /// Hit points at most.
    pub max_hp: Option<i32>,
    /// Temporary hit points.
    #[serde(default)]
    pub temp_hp: i32,
    /// 10 unless given.
    pub armor_class: Option<i32>,
    /// Feet a round; 30 unless given.
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
    #[schema(value_type = Vec<Object>)]
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
    pub attacks: Vec<shapes::NpcAttack>,
    /// Such as `Darkvision`.
    #[serde(default)]
    pub features: Vec<String>,
    /// Attacks of one attack action.
    pub attacks_per_action: Option<i32>,
    /// Whether it dies at 0 hit points; an enemy without a record does.
    pub is_npc: Option<bool>,
}

/// Where somebody stands, in squares of five feet.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionInput {
    /// Squares from the west.
    pub x: i32,
    /// Squares from the north.
    pub y: i32,
    /// Squares above the ground.
    #[serde(default)]
    pub z: i32,
}

/// A condition: its name, or an object.
#[derive(Clone, Debug, ToSchema, JsonSchema)]
#[serde(untagged)]
pub enum ConditionInput {
    Name(String),
    Detail(ConditionDetailInput),
}

/// By hand, so that what is wrong in an object is pointed at.
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
    rounds_remaining: Option<i32>,
    /// Of exhaustion.
    #[serde(default)]
    level: Option<i32>,
    /// Whether a rest ends it.
    #[serde(default)]
    until_rest: bool,
    /// Difficulty of the save that ends it.
    #[serde(default)]
    save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    save_ability: Option<AbilityName>,
    /// What it looks like.
    #[serde(default)]
    description: Option<String>,
}

/// The ground; squares are written `"x,y"`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerrainInput {
    /// 5 to 100 squares; 50 unless given.
    pub width: Option<i32>,
    /// The same.
    pub height: Option<i32>,
    /// Squares nobody can enter.
    #[schema(value_type = Vec<String>)]
    #[schemars(with = "Vec<String>")]
    #[serde(default)]
    pub obstacles: Vec<Square>,
    /// Squares that cost twice the movement.
    #[schema(value_type = Vec<String>)]
    #[schemars(with = "Vec<String>")]
    #[serde(default)]
    pub difficult_terrain: Vec<Square>,
    /// The same, because they are water.
    #[schema(value_type = Vec<String>)]
    #[schemars(with = "Vec<String>")]
    #[serde(default)]
    pub water: Vec<Square>,
    /// Squares that harm.
    #[serde(default)]
    pub hazards: Vec<HazardInput>,
}

/// A square that harms who enters it or begins a turn there.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HazardInput {
    /// `"x,y"`.
    #[schema(value_type = String)]
    #[schemars(with = "String")]
    position: Square,
    /// Such as `fire`.
    #[serde(rename = "type")]
    kind: String,
    /// A sum of dice and a number.
    #[serde(default)]
    damage: Option<String>,
    /// Damage type.
    #[serde(default)]
    damage_type: Option<String>,
    /// Difficulty of the save that halves the damage and spares the condition.
    #[serde(default)]
    dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    save_ability: Option<AbilityName>,
    /// The condition it brings.
    #[serde(default)]
    condition: Option<String>,
}

/// How an encounter begins.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    /// Its name.
    pub name: Option<String>,
    /// 1 to 200.
    #[serde(default)]
    pub participants: Vec<ParticipantInput>,
    /// The ground; 50 by 50 empty squares unless given.
    pub terrain: Option<TerrainInput>,
    /// `bright`, `dim`, `darkness` or `magical_darkness`.
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["bright", "dim", "darkness", "magical_darkness"]))]
    #[serde(default, deserialize_with = "or_default")]
    pub lighting: Lighting,
    /// Ids of those who are surprised.
    #[serde(default)]
    pub surprise: Vec<String>,
    /// Rolls initiative from this number instead of the campaign's dice.
    pub seed: Option<u64>,
    /// Initiative dice rolled by hand, in the order of the participants; needs the scope `gm`.
    #[schemars(skip)]
    pub dice: Option<Vec<u32>>,
}

/// How an encounter ends.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndInput {
    /// `victory`, `defeat`, `fled`, `negotiated` or `other`.
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["victory", "defeat", "fled", "negotiated", "other"]))]
    pub outcome: EndOutcome,
    /// Whether a summary is wanted; yes unless given.
    #[serde(default = "yes")]
    pub generate_summary: bool,
    /// Without it the encounter leaves lists and reads; its rows stay, and it can be committed.
    #[serde(default = "yes")]
    pub preserve_log: bool,
    /// The game master's notes.
    #[serde(default)]
    pub notes: Option<String>,
}

/// What of an ended encounter is written into the records.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitInput {
    /// Only these characters, by id or slug; without it, all.
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) character_ids: Option<UpTo<Words<100>, 0, 200>>,
    /// Conditions stay as the record has them.
    #[serde(default)]
    pub exclude_conditions: bool,
    /// Slots stay as the record has them.
    #[serde(default)]
    pub exclude_spell_slots: bool,
    /// Only show what would be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// How much is told.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    /// `minimal`, `summary`, `standard` or `detailed`.
    #[param(value_type = Option<String>)]
    pub verbosity: Verbosity,
}

fn yes() -> bool {
    true
}

/// Something done in an encounter. `participant_id` acts (whose turn it is, unless given), `target_id` is affected; each
/// action reads the fields it needs.
#[derive(Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionInput {
    /// What is done.
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = kinds()))]
    pub action: ActionKind,
    /// Who acts.
    #[serde(default)]
    pub participant_id: Option<String>,
    /// Who is affected.
    #[serde(default)]
    pub target_id: Option<String>,
    /// Instead of `target_id`, the several targets of a spell: those it names, or those who stand in its area.
    #[serde(default)]
    pub target_ids: Vec<String>,
    /// Hit points, uses of a resource, feet moved without positions, or an initiative.
    #[serde(default)]
    pub amount: Option<i32>,
    /// Healing as a sum of dice.
    #[serde(default)]
    pub formula: Option<String>,
    /// Type of `amount` as damage.
    #[serde(default)]
    pub damage_type: Option<String>,
    /// Damage of several types.
    #[serde(default)]
    pub parts: Vec<PartInput>,
    /// Whether damage is magical.
    #[serde(default)]
    pub magical: bool,
    /// Whether damage comes from a critical hit.
    #[serde(default)]
    pub critical: bool,
    /// One of the 15 conditions.
    #[serde(default)]
    pub condition: Option<String>,
    /// A spell or feature at work, such as Bless.
    #[serde(default)]
    pub effect: Option<String>,
    /// Rounds it lasts.
    #[serde(default)]
    pub rounds: Option<i32>,
    /// `rounds`, `concentration`, `until_dispelled`, `until_rest` or `save_ends`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Difficulty of the save that ends it.
    #[serde(default)]
    pub save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(crate) save_ability: Option<AbilityName>,
    /// What it comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// What it looks like.
    #[serde(default)]
    pub description: Option<String>,
    /// Of a spell slot, or of exhaustion.
    #[serde(default)]
    pub level: Option<i32>,
    /// Name of a resource.
    #[serde(default)]
    pub resource: Option<String>,
    /// Where to.
    #[serde(default)]
    pub position: Option<PositionInput>,
    /// The way there, square by square; the cheapest unless given.
    #[serde(default)]
    pub path: Vec<PositionInput>,
    /// Whether a shove pushes away.
    #[serde(default)]
    pub away: bool,
    /// `action`, `bonus_action`, `reaction` or `free`, where it is not the usual.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[schemars(with = "Option<String>")]
    pub cost: Option<Cost>,
    /// A game master's word: turn, economy and movement are not checked. Needs the scope `gm`.
    #[serde(default, rename = "override")]
    pub overridden: bool,
    /// What is attacked with; may be left out with `spell_name`, or when there is one attack.
    #[serde(default)]
    pub weapon: Option<String>,
    /// Damage sources to use, such as Sneak Attack or Divine Smite 2.
    #[serde(default)]
    pub extra_damage_sources: Vec<String>,
    /// Whether `weapon` names a spell.
    #[serde(default)]
    pub is_spell_attack: bool,
    /// The spell to attack with.
    #[serde(default)]
    pub spell_name: Option<String>,
    /// Level of the slot to cast or smite with.
    #[serde(default)]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 9)]
    pub(crate) slot_level: Option<Within<1, 9>>,
    /// Whether a versatile weapon is held in two hands.
    #[serde(default)]
    pub two_handed: bool,
    /// `none`, `advantage` or `disadvantage`, beside what the rules find.
    #[serde(default)]
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["none", "advantage", "disadvantage"]))]
    pub advantage: Advantage,
    /// `none`, `half`, `three_quarters` or `total`.
    #[serde(default)]
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["none", "half", "three_quarters", "total"]))]
    pub cover: Cover,
    /// What positions and conditions do not tell.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub(crate) context: ContextInput,
    /// Dice rolled by hand; needs the scope `gm`.
    #[serde(default)]
    #[schemars(skip)]
    pub dice: Option<Vec<u32>>,
    /// Only show what would come of it.
    #[serde(default)]
    #[schemars(skip)]
    pub preview: bool,
}

/// Damage of one type.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartInput {
    /// How much.
    amount: i32,
    /// Damage type.
    #[serde(default, rename = "type", alias = "damage_type")]
    kind: Option<String>,
}

fn kinds() -> Vec<&'static str> {
    ActionKind::ALL.iter().map(|kind| kind.name()).collect()
}

impl From<PositionInput> for Position {
    fn from(p: PositionInput) -> Self {
        Self { x: p.x, y: p.y, z: p.z }
    }
}

impl From<&ActionInput> for Action {
    fn from(input: &ActionInput) -> Self {
        let part = |p: &PartInput| DamagePart { amount: p.amount, damage_type: p.kind.clone().unwrap_or_default() };
        Self {
            action: input.action,
            participant_id: input.participant_id.clone(),
            target_id: input.target_id.clone(),
            target_ids: input.target_ids.clone(),
            amount: input.amount,
            formula: input.formula.clone(),
            damage_type: input.damage_type.clone(),
            parts: input.parts.iter().map(part).collect(),
            magical: input.magical,
            critical: input.critical,
            condition: input.condition.clone(),
            effect: input.effect.clone(),
            rounds: input.rounds,
            duration: input.duration,
            save_dc: input.save_dc,
            save_ability: input.save_ability.map(|a| a.0),
            source: input.source.clone(),
            description: input.description.clone(),
            level: input.level,
            resource: input.resource.clone(),
            position: input.position.map(Into::into),
            path: input.path.iter().copied().map(Into::into).collect(),
            away: input.away,
            cost: input.cost,
            overridden: input.overridden,
            attack: AttackArgs {
                weapon: input.weapon.clone(),
                extra_damage_sources: input.extra_damage_sources.clone(),
                is_spell_attack: input.is_spell_attack,
                spell_name: input.spell_name.clone(),
                slot_level: input.slot_level.map(|level| level.0),
                two_handed: input.two_handed,
            },
            circumstances: Circumstances {
                advantage: input.advantage,
                cover: input.cover,
                context: (&input.context).into(),
            },
        }
    }
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

impl From<&TerrainInput> for Terrain {
    fn from(input: &TerrainInput) -> Self {
        let plain = Self::default();
        let hazard = |h: &HazardInput| Hazard {
            position: h.position,
            kind: h.kind.clone(),
            damage: h.damage.clone(),
            damage_type: h.damage_type.clone(),
            dc: h.dc,
            save_ability: h.save_ability.map(|a| a.0),
            condition: h.condition.clone(),
        };
        Self {
            width: input.width.unwrap_or(plain.width),
            height: input.height.unwrap_or(plain.height),
            obstacles: input.obstacles.clone(),
            difficult_terrain: input.difficult_terrain.clone(),
            water: input.water.clone(),
            hazards: input.hazards.iter().map(hazard).collect(),
        }
    }
}
