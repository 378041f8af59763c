//! `sheet.show`: shows a character's sheet to the caller.

use entity::character;
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec};
use crate::tools::spec::Described;
use base::error::{Error, Result};
use edge::{
    caller::Scope,
    http::resource::{self, Ref},
};
use world::{
    characters::Characters,
    rules::{
        cast::{Named, Who, named_all},
        values::Words,
    },
};

pub(super) struct SheetShow;

/// Whose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A player character, by id, slug or name; the player's own unless given.
    #[serde(default)]
    name: Option<Words<200>>,
}

impl CommandSpec for SheetShow {
    const NAME: &'static str = "sheet.show";
    const DESCRIPTION: &'static str = "Show a character sheet: hit points, abilities, inventory, spells.";
    const ALSO: Option<Scope> = Some(Scope::Read);
    const FOR_FALLEN: bool = true;
    const HINT: &'static str = "Say whose sheet to show, by the character's name.";
    type Arguments = Arguments;
    type Answer = Described<serde_json::Value, character::Model>;
}

impl AtOnce for SheetShow {
    async fn run(cx: &CommandCx<'_>, Arguments { name }: Arguments) -> Result<CommandOutcome<Self::Answer>> {
        let whose = match &name {
            Some(name) => character(cx, &name.0).await?,
            None => cx.player,
        };
        let campaign = Ref::Id(cx.campaign);
        let sheet = resource::find::<Characters>(cx.tx().await?, cx.caller, Some(&campaign), &Ref::Id(whose)).await?;
        let message = format!(
            "{}: level {} {} {}, {} of {} hit points, armor class {}",
            sheet.name, sheet.level, sheet.race, sheet.profession, sheet.hp, sheet.max_hp, sheet.armor_class
        );
        Ok(CommandOutcome::ephemeral(resource::view::<Characters>(sheet, cx.caller)?.into(), message))
    }
}

/// The character with this name. Players may not see an NPC's sheet.
async fn character(cx: &CommandCx<'_>, name: &str) -> Result<uuid::Uuid> {
    let unknown = |why: String| Error::invalid("/name", "unknown_reference", why);
    match named_all(cx.tx().await?, cx.campaign, &[name]).await?.pop() {
        Some(Named::One(Who::Character(id))) => Ok(id),
        Some(Named::Unclear(why)) => Err(unknown(why)),
        _ => Err(unknown("There is no such character in this campaign.".to_owned())),
    }
}
