//! `get_current_scene`: the present scene.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::CurrentScene,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::sessions::overview;

pub(super) struct GetCurrentScene;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

impl ToolSpec for GetCurrentScene {
    const NAME: &'static str = "get_current_scene";
    const DESCRIPTION: &'static str = "See the scene that is played: its size, tokens, notes and lights.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = CurrentScene;

    async fn run(cx: &ToolCx<'_>, _: Arguments) -> Result<Value> {
        match overview::scene(cx.tx().await?, cx.campaign, cx.session).await? {
            Some(scene) => serde_json::to_value(scene.seen_by(cx.reader.role)).map_err(Error::internal),
            None => Ok(json!({ "id": null, "message": "No active scene" })),
        }
    }
}
