//! `measure_distance`: measures a distance on the present scene. Scenes and world states have no data about walls and doors, so
//! nobody can say whether the path is blocked: `path_blocked` is null.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

use super::{
    answers::{DistanceTold, TokenBetween},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::sessions::{overview, world_state::Scene};

pub(super) struct MeasureDistance;

/// The size of a square of the grid.
const FEET_PER_SQUARE: f64 = 5.0;

/// From where to where: tokens, or points of the scene.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Where it begins: x in the scene's coordinates.
    #[serde(default)]
    from_x: Option<f64>,
    /// Where it begins: y in the scene's coordinates.
    #[serde(default)]
    from_y: Option<f64>,
    /// Where it ends: x in the scene's coordinates.
    #[serde(default)]
    to_x: Option<f64>,
    /// Where it ends: y in the scene's coordinates.
    #[serde(default)]
    to_y: Option<f64>,
    /// A token's id or name, instead of `from_x` and `from_y`.
    #[serde(default)]
    from_token: Option<String>,
    /// A token's id or name, instead of `to_x` and `to_y`.
    #[serde(default)]
    to_token: Option<String>,
}

type Point = (f64, f64);

impl ToolSpec for MeasureDistance {
    const NAME: &'static str = "measure_distance";
    const DESCRIPTION: &'static str = "Measure the distance in feet between two tokens or points of the scene that is played, and \
        see which tokens stand in between. Walls and doors are not known: whether they block the way is not told.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    type Arguments = Arguments;
    type Answer = DistanceTold;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let scene = overview::scene(cx.tx().await?, cx.campaign, cx.session).await?.unwrap_or_default();
        let a = arguments;
        let from = point(&scene, "from", a.from_token.as_deref(), a.from_x, a.from_y)?;
        let to = point(&scene, "to", a.to_token.as_deref(), a.to_x, a.to_y)?;
        // With a grid of 0 or 1, the coordinates are squares already.
        let square = Some(number(&scene.dimensions.grid)).filter(|grid| *grid > 1.0).unwrap_or(1.0);
        let squares = ((to.0 - from.0).abs().max((to.1 - from.1).abs()) / square).round();
        let between = scene.tokens.iter().filter(|t| is_between(from, to, (number(&t.x), number(&t.y)), square));
        let between = between.map(|t| TokenBetween { id: t.id.clone(), name: t.name.clone() });
        Ok(DistanceTold {
            distance: squares * FEET_PER_SQUARE,
            units: "ft",
            squares,
            path_blocked: None,
            walls_known: false,
            intervening_tokens: between.collect(),
        })
    }
}

fn number(n: &Number) -> f64 {
    n.as_f64().unwrap_or_default()
}

fn point(scene: &Scene, side: &str, token: Option<&str>, x: Option<f64>, y: Option<f64>) -> Result<Point> {
    let finite = |v: f64| v.is_finite() && v.abs() <= 1e9;
    match (token, x, y) {
        (Some(name), None, None) => {
            let named = scene.tokens.iter().find(|t| t.id == name || t.name.eq_ignore_ascii_case(name));
            named.map(|t| (number(&t.x), number(&t.y))).ok_or_else(|| {
                let message = "There is no such token on the scene that is played.";
                Error::invalid(format!("/{side}_token"), "unknown_reference", message)
            })
        }
        (None, Some(x), Some(y)) if finite(x) && finite(y) => Ok((x, y)),
        _ => {
            let message = format!("Give {side}_x and {side}_y, or {side}_token.");
            Err(Error::invalid(format!("/{side}_x"), "required", message))
        }
    }
}

/// Whether a token is within half a square of the straight line, and at neither end of it.
fn is_between(from: Point, to: Point, at: Point, square: f64) -> bool {
    let way = (to.0 - from.0, to.1 - from.1);
    let length = way.0.hypot(way.1);
    if length == 0.0 {
        return false;
    }
    let own = (at.0 - from.0, at.1 - from.1);
    let along = (own.0 * way.0 + own.1 * way.1) / length;
    let aside = (own.0 * way.1 - own.1 * way.0).abs() / length;
    let half = square / 2.0;
    aside < half && along > half && along < length - half
}
