//! `move`: the character goes to another location. Nobody goes elsewhere during a fight.

use entity::message::Type;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::CharacterMoved,
    spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec},
};
use base::error::{Error, Result};
use edge::http::validate;
use world::{characters, npcs::place::location_name, rules::values::Words};

pub(super) struct Move;

/// Where to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The place's name.
    location: Words<200>,
}

impl CommandSpec for Move {
    const NAME: &'static str = "move";
    const DESCRIPTION: &'static str = "Go to another place of the world that the player names.";
    const PLANNED: bool = false;
    const HINT: &'static str = "Say where to go, such as: to the harbour.";
    type Arguments = Arguments;
    type Answer = CharacterMoved;

    fn check(arguments: &Arguments) -> Result<()> {
        validate::line(&arguments.location.0, &())
            .map_err(|e| Error::invalid("/location", "invalid_value", e.message().to_owned()))
    }
}

impl AtOnce for Move {
    async fn run(cx: &CommandCx<'_>, Arguments { location }: Arguments) -> Result<CommandOutcome<CharacterMoved>> {
        cx.outside_fights("go elsewhere", " To move within the fight, say so as something your character does.")
            .await?;
        let version = characters::moves::move_to(cx.tx().await?, cx.campaign, cx.player, &location.0).await?;
        let message = format!("{} goes to {}", cx.name, location_name(&location.0));
        let moved = CharacterMoved { character_id: cx.player, location: location.0, version };
        Ok(CommandOutcome::public(cx, Type::System, moved, message))
    }
}
