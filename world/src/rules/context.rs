//! Place and moment of a roll, as requests and tool calls describe them.

use rules::{
    encounter::limits,
    resolve::{Context, OtherWeapon},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use utoipa::{
    ToSchema,
    openapi::{
        Schema,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

use super::values::{UpTo, Within, Words};

/// Place and moment of a roll.
#[derive(Debug, Default, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextInput {
    /// An enemy of the target, able to act, is within 5 feet of it.
    #[serde(default)]
    ally_adjacent: bool,
    /// Somebody hostile, able to see and act, is within 5 feet of the attacker.
    #[serde(default)]
    hostile_adjacent: bool,
    /// The target does not see the attacker.
    #[serde(default)]
    attacker_unseen: bool,
    /// The attacker does not see the target.
    #[serde(default)]
    target_unseen: bool,
    /// What a frightened creature fears is in its sight; true unless given.
    #[serde(default)]
    fear_source_visible: Option<bool>,
    /// The bonus attack with the weapon in the other hand.
    #[serde(default)]
    off_hand: bool,
    /// What is in the other hand: a weapon's name, or whether there is one.
    #[schemars(with = "String", extend("type" = ["string", "boolean", "null"]))]
    #[schema(schema_with = weapon_or_whether)]
    #[serde(default, deserialize_with = "other_weapon")]
    other_weapon: Option<OtherWeapon>,
    /// Feet between attacker and target.
    #[schema(value_type = Option<i32>, minimum = 0, maximum = 100_000)]
    #[serde(default)]
    distance_ft: Option<Within<0, 100_000>>,
    /// Names the turn, so that what works once a turn is used once.
    #[schemars(with = "String", extend("type" = ["string", "integer", "null"]))]
    #[schema(schema_with = text_or_number)]
    #[serde(default, deserialize_with = "turn_key")]
    turn_key: Option<String>,
    /// The check needs sight.
    #[serde(default)]
    sight_needed: bool,
    /// The check needs hearing.
    #[serde(default)]
    hearing_needed: bool,
    /// The fight is under water.
    #[serde(default)]
    underwater: bool,
    /// The attacker rides.
    #[serde(default)]
    mounted: bool,
    /// A melee attack that drops its target knocks it out instead of killing it.
    #[serde(default)]
    knock_out: bool,
    /// Reactions the target takes, such as Uncanny Dodge.
    #[schema(value_type = Vec<String>, max_items = 20)]
    #[serde(default)]
    reactions: UpTo<Words<100>, 0, 20>,
    /// Bonus of a paladin's aura that the roller of a saving throw stands in.
    #[schema(value_type = Option<i32>, minimum = 0, maximum = 20)]
    #[serde(default)]
    aura_of_protection: Option<Within<0, 20>>,
}

fn weapon_or_whether() -> Schema {
    one_of(
        [Type::String, Type::Boolean, Type::Null],
        "What is in the other hand: a weapon's name, or whether there is one.",
    )
}

fn text_or_number() -> Schema {
    one_of([Type::String, Type::Integer, Type::Null], "Names the turn, so that what works once a turn is used once.")
}

fn one_of(types: [Type; 3], description: &str) -> Schema {
    let shape = ObjectBuilder::new().schema_type(SchemaType::from_iter(types)).max_length(Some(limits::NAME_CHARS_MAX));
    shape.description(Some(description)).build().into()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TurnKey {
    Text(Words<100>),
    Number(i64),
}

fn turn_key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<TurnKey>::deserialize(from)?.map(|key| match key {
        TurnKey::Text(text) => text.0,
        TurnKey::Number(number) => number.to_string(),
    }))
}

fn other_weapon<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OtherWeapon>, D::Error> {
    let other = Option::<OtherWeapon>::deserialize(from)?;
    match &other {
        Some(OtherWeapon::Named(name)) if name.chars().count() > limits::NAME_CHARS_MAX => {
            Err(D::Error::custom(format!("must have at most {} characters", limits::NAME_CHARS_MAX)))
        }
        // Models that were told of text alone write so.
        Some(OtherWeapon::Named(name)) if name == "true" => Ok(Some(OtherWeapon::Held(true))),
        Some(OtherWeapon::Named(name)) if name == "false" => Ok(Some(OtherWeapon::Held(false))),
        _ => Ok(other),
    }
}

impl From<&ContextInput> for Context {
    fn from(input: &ContextInput) -> Self {
        Self {
            ally_adjacent: input.ally_adjacent,
            hostile_adjacent: input.hostile_adjacent,
            attacker_unseen: input.attacker_unseen,
            target_unseen: input.target_unseen,
            fear_source_visible: input.fear_source_visible.unwrap_or(true),
            off_hand: input.off_hand,
            other_weapon: input.other_weapon.clone(),
            distance_ft: input.distance_ft.map(|d| d.0),
            turn_key: input.turn_key.clone(),
            sight_needed: input.sight_needed,
            hearing_needed: input.hearing_needed,
            underwater: input.underwater,
            mounted: input.mounted,
            knock_out: input.knock_out,
            reactions: input.reactions.0.iter().map(|r| r.0.clone()).collect(),
            aura_of_protection: input.aura_of_protection.map(|a| a.0),
        }
    }
}
