//! `grant_passive_skill`: an owner gives a player character a passive skill. It is a feature of the character, and prompts about the
//! character show it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::SkillGranted,
    arguments::line,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::{characters::service::grant_skill, owners::domain::Domain};

pub(super) struct GrantPassiveSkill;

/// Who gets which skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A player in your domain: the player attribute of the action.
    player_id: String,
    /// The name of the skill, such as `noble bearing`.
    #[schemars(length(min = 1, max = 200))]
    skill_id: String,
    /// How well it is mastered at first, in percent.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    initial_percentage: i32,
}

impl ToolSpec for GrantPassiveSkill {
    const NAME: &'static str = "grant_passive_skill";
    const DESCRIPTION: &'static str =
        "Give a player in your domain a passive skill. Everybody who meets the player notices it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = SkillGranted;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let skill = line(&arguments.skill_id, "/skill_id")?;
        let percentage = arguments.initial_percentage;
        if !(0..=100).contains(&percentage) {
            return Err(Error::invalid("/initial_percentage", "invalid_value", "must be from 0 to 100"));
        }
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let player = domain.player(tx, &arguments.player_id, "/player_id").await?;
        let id = player.id;
        grant_skill(tx, player, skill, percentage).await?;
        Ok(json!({ "player_id": id, "skill": skill, "percentage": percentage }))
    }
}
