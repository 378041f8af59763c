//! `get_current_scene`: the present scene.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    answers::CurrentScene,
    spec::{ActorKind, Described, ToolCx, ToolSpec},
};
use base::error::Result;
use world::sessions::{overview, world_state::Scene};

pub(super) struct GetCurrentScene;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

/// The present scene, or that there is none.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum SceneTold {
    Scene(Scene),
    /// `id` is null.
    Nothing {
        id: (),
        message: &'static str,
    },
}

impl ToolSpec for GetCurrentScene {
    const NAME: &'static str = "get_current_scene";
    const DESCRIPTION: &'static str = "See the scene that is played: its size, tokens, notes and lights.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = Described<SceneTold, CurrentScene>;

    async fn run(cx: &ToolCx<'_>, _: Arguments) -> Result<Self::Answer> {
        match overview::scene(cx.tx().await?, cx.campaign, cx.session).await? {
            Some(scene) => Ok(SceneTold::Scene(scene.seen_by(cx.reader.role)).into()),
            None => Ok(SceneTold::Nothing { id: (), message: "No active scene" }.into()),
        }
    }
}
