//! `grant_passive_skill`: an owner gives a player character a passive skill. It is a feature of the character, and prompts about the
//! character show it.

use entity::shapes::Feature;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answers::SkillGranted,
    arguments::{line, line_of},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use world::{actors, characters::service::grant_skill, owners::domain::Domain};

pub(super) struct GrantPassiveSkill;

/// Who gets which skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A player in your domain: the player attribute of the action.
    player_id: String,
    /// The name of the skill, such as `noble bearing`.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// What it does, in a sentence.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    description: Option<String>,
}

impl ToolSpec for GrantPassiveSkill {
    const NAME: &'static str = "grant_passive_skill";
    const DESCRIPTION: &'static str =
        "Give a player in your domain a passive skill. Everybody who meets the player notices it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = SkillGranted;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let name = line(&arguments.name, "/name")?;
        let description =
            arguments.description.as_deref().map(|words| line_of(words, "/description", 500)).transpose()?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let player = domain.player(tx, &arguments.player_id, "/player_id").await?;
        if player.ai_lock {
            return Err(actors::locked(&player.name));
        }
        let id = player.id;
        let skill = Feature {
            name: name.to_owned(),
            level: None,
            chosen_option: None,
            scaling_formula: None,
            percentage: None,
            description: description.map(ToOwned::to_owned),
            source: Some(domain.owner.name),
        };
        grant_skill(tx, player, skill.clone()).await?;
        Ok(SkillGranted { player_id: id.0, feature: skill })
    }
}
