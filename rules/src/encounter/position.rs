//! Squares and positions. A square is 5 feet. Distance is counted in squares, and a diagonal counts as one (SRD 5.1,
//! "Movement", on a grid).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use utoipa::ToSchema;

/// The side of a square in feet.
pub(super) const SQUARE_FT: i32 = 5;

/// A position in squares. For a large creature it is the corner with the lowest coordinates. `z` counts squares above
/// the ground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = SquarePosition)]
pub struct Position {
    pub x: i32,
    pub y: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub z: i32,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl Position {
    /// The distance in squares between two footprints with the given sides; 1 for neighbours, 0 for the same place.
    pub(super) fn squares_to(self, own: i32, other: Self, theirs: i32) -> i32 {
        let gap = |a: i32, b: i32| {
            let (a, b) = (i64::from(a), i64::from(b));
            (b - (a + i64::from(own) - 1)).max(a - (b + i64::from(theirs) - 1)).max(0)
        };
        let most = gap(self.x, other.x).max(gap(self.y, other.y)).max(gap(self.z, other.z));
        i32::try_from(most).unwrap_or(i32::MAX / SQUARE_FT).min(i32::MAX / SQUARE_FT)
    }

    pub(super) const fn square(self) -> Square {
        Square { x: self.x, y: self.y }
    }
}

/// A square on the ground, written `"x,y"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Square {
    pub x: i32,
    pub y: i32,
}

impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.x, self.y)
    }
}

impl std::str::FromStr for Square {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a square must be written \"x,y\", such as \"3,4\"";
        let (x, y) = text.split_once(',').ok_or(WRONG)?;
        let number = |text: &str| text.trim().parse().map_err(|_| WRONG);
        Ok(Self { x: number(x)?, y: number(y)? })
    }
}

impl Serialize for Square {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Square {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
