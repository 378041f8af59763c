//! `use_skill`: uses a skill on somebody or something, without a difficulty from the player.

use rules::srd::Advantage;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::SkillUsed,
    check::{Difficulty, checked},
    spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec},
};
use base::error::{Error, Result};
use world::rules::{
    cast::{Named, named_all},
    values::{SkillName, Within, Words},
};

/// The difficulty if nobody gives one: medium.
const DC: i32 = 15;

pub(super) struct UseSkill;

/// What is used, and on whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The skill.
    skill: SkillName,
    /// A character or NPC it is used on, by id, slug or name.
    #[serde(default)]
    target: Option<Words<200>>,
    /// Difficulty; 15, which is medium, unless given.
    #[serde(default)]
    dc: Option<Within<1, 40>>,
}

impl CommandSpec for UseSkill {
    const NAME: &'static str = "use_skill";
    const DESCRIPTION: &'static str = "Use a skill, if need be on somebody.";
    const PLANNED: bool = false;
    const DECIDES: bool = true;
    const HINT: &'static str = "Name one of the skills, such as stealth or persuasion.";
    type Arguments = Arguments;
    type Answer = SkillUsed;
}

impl AtOnce for UseSkill {
    async fn run(cx: &CommandCx<'_>, arguments: Arguments) -> Result<CommandOutcome<SkillUsed>> {
        let Arguments { skill, target, dc } = arguments;
        let mut target_id = None;
        if let Some(target) = &target {
            match named_all(cx.tx().await?, cx.campaign, &[&target.0]).await?.pop() {
                Some(Named::One(who)) => target_id = Some(who.id()),
                Some(Named::Unclear(why)) => return Err(Error::invalid("/target", "unknown_reference", why)),
                None => {}
            }
        }
        let difficulty = Difficulty { dc: dc.as_ref().map_or(DC, |dc| dc.0), is_told: dc.is_some() };
        let done = checked(cx, Some(skill), None, difficulty, Advantage::None).await?;
        Ok(done.map(|outcome| SkillUsed { outcome, target_id }))
    }
}
