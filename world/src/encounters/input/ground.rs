//! Input for positions and the ground.

use rules::encounter::{Hazard, Position, Square, Terrain};
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::rules::values::AbilityName;

/// Where somebody stands, in squares of five feet.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionInput {
    /// Squares from the west.
    #[schema(minimum = 0, maximum = 99)]
    pub x: i32,
    /// Squares from the north.
    #[schema(minimum = 0, maximum = 99)]
    pub y: i32,
    /// Squares above the ground.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub z: i32,
}

/// The ground; squares are written `"x,y"`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerrainInput {
    /// 5 to 100 squares; 50 unless given.
    #[schema(minimum = 5, maximum = 100)]
    pub width: Option<i32>,
    /// The same.
    #[schema(minimum = 5, maximum = 100)]
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

impl From<PositionInput> for Position {
    fn from(p: PositionInput) -> Self {
        Self { x: p.x, y: p.y, z: p.z }
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
