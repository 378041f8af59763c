//! Terrain and light.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Position, Refusal, Square, arguments::text, limits};
use crate::srd::{Ability, DamageDice, condition, damage_type};

/// How much light there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lighting {
    /// Everybody sees.
    #[default]
    Bright,
    /// Everybody sees well enough to fight.
    Dim,
    /// Creatures without darkvision cannot see.
    Darkness,
    /// Nobody sees.
    MagicalDarkness,
}

/// Harms creatures that enter its square or begin a turn there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = TerrainHazard)]
pub struct Hazard {
    /// Its square.
    #[schema(value_type = String, required = true)]
    pub position: Square,
    /// A free text that names it, such as `fire` or `spikes`.
    #[serde(rename = "type")]
    #[schema(required = true)]
    pub kind: String,
    /// A sum of dice and a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// Damage type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage_type: Option<String>,
    /// The DC of a saving throw that halves the damage and prevents the condition. Without it neither happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dc: Option<i32>,
    /// The ability of the saving throw. Default: Dexterity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_ability: Option<Ability>,
    /// The condition that it causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The ground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Terrain {
    /// Squares from west to east.
    #[schema(required = true)]
    pub width: i32,
    /// Squares from north to south.
    #[schema(required = true)]
    pub height: i32,
    /// Squares that nobody can enter.
    #[schema(value_type = Vec<String>, required = true)]
    pub obstacles: Vec<Square>,
    /// Squares that cost twice the movement.
    #[schema(value_type = Vec<String>, required = true)]
    pub difficult_terrain: Vec<Square>,
    /// Squares that cost twice the movement because they are water.
    #[schema(value_type = Vec<String>, required = true)]
    pub water: Vec<Square>,
    /// Squares that harm.
    #[schema(required = true)]
    pub hazards: Vec<Hazard>,
}

impl Default for Terrain {
    fn default() -> Self {
        Self {
            width: 50,
            height: 50,
            obstacles: Vec::new(),
            difficult_terrain: Vec::new(),
            water: Vec::new(),
            hazards: Vec::new(),
        }
    }
}

impl Terrain {
    /// Whether a footprint with this side lies on the grid.
    pub(super) fn holds(&self, at: Position, side: i32) -> bool {
        let fits = |from: i32, size: i32| from >= 0 && i64::from(from) + i64::from(side) <= i64::from(size);
        fits(at.x, self.width) && fits(at.y, self.height) && (0..=limits::HEIGHT_MAX).contains(&at.z)
    }

    /// Whether an obstacle is in the footprint.
    pub(super) fn blocks(&self, at: Position, side: i32) -> bool {
        self.obstacles.iter().any(|s| covers(at, side, *s))
    }

    /// The hazards in the footprint, with their indexes.
    pub(super) fn hazards_at(&self, at: Position, side: i32) -> impl Iterator<Item = (usize, &Hazard)> {
        self.hazards.iter().enumerate().filter(move |(_, h)| at.z == 0 && covers(at, side, h.position))
    }

    /// Checks the sizes, and that everything lies on the grid.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let size = limits::GRID_MIN..=limits::GRID_MAX;
        for (argument, value) in [("terrain/width", self.width), ("terrain/height", self.height)] {
            if !size.contains(&value) {
                return Err(Refusal::argument(argument, "must be 5 to 100 squares"));
            }
        }
        let lists = [
            ("terrain/obstacles", &self.obstacles),
            ("terrain/difficult_terrain", &self.difficult_terrain),
            ("terrain/water", &self.water),
        ];
        for (argument, squares) in lists {
            if squares.len() > limits::SQUARES_MAX {
                return Err(Refusal::too_many(argument, limits::SQUARES_MAX));
            }
            if let Some(outside) = squares.iter().find(|s| !self.has(**s)) {
                return Err(Refusal::argument(argument, format!("{outside} is outside of the grid")));
            }
        }
        if self.hazards.len() > limits::HAZARDS_MAX {
            return Err(Refusal::too_many("terrain/hazards", limits::HAZARDS_MAX));
        }
        self.hazards
            .iter()
            .enumerate()
            .try_for_each(|(at, hazard)| self.check_hazard(&format!("terrain/hazards/{at}"), hazard))
    }

    fn check_hazard(&self, path: &str, hazard: &Hazard) -> Result<(), Refusal> {
        let texts = [
            ("type", Some(&hazard.kind), limits::NAME_CHARS_MAX),
            ("damage", hazard.damage.as_ref(), limits::FORMULA_CHARS_MAX),
            ("damage_type", hazard.damage_type.as_ref(), limits::NAME_CHARS_MAX),
            ("condition", hazard.condition.as_ref(), limits::NAME_CHARS_MAX),
        ];
        for (field, value, most) in texts {
            text(&format!("{path}/{field}"), value.map_or("", String::as_str), most)?;
        }
        let wrong = |message: String| Err(Refusal::argument(path, message));
        if !self.has(hazard.position) {
            return wrong(format!("{} is outside of the grid", hazard.position));
        }
        if hazard.damage.as_deref().is_some_and(|d| DamageDice::parse(d).is_none()) {
            return wrong("`damage` must be a sum of dice such as 2d6+1".to_owned());
        }
        if hazard.damage_type.as_deref().is_some_and(|d| damage_type(d).is_none()) {
            return wrong(format!("`damage_type` must be one of {}", crate::srd::DAMAGE_TYPES.join(", ")));
        }
        if hazard.condition.as_deref().is_some_and(|c| condition(c).is_none()) {
            return wrong("`condition` must be one of the 15 conditions".to_owned());
        }
        Ok(())
    }

    fn has(&self, square: Square) -> bool {
        (0..self.width).contains(&square.x) && (0..self.height).contains(&square.y)
    }
}

fn covers(at: Position, side: i32, square: Square) -> bool {
    let within = |from: i32, value: i32| value >= from && i64::from(value) < i64::from(from) + i64::from(side);
    within(at.x, square.x) && within(at.y, square.y)
}
