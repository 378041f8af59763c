//! `pray`: the character prays to whoever watches over it. The owners answer in turns of their own.

use entity::message::Type;
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec};
use crate::reactions::pray::{Prayer, queue};
use base::error::Result;
use world::{rules::values::Words, significance::report::Triggered};

pub(super) struct Pray;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The prayer, in the player's words.
    message: Words<2000>,
}

impl CommandSpec for Pray {
    const NAME: &'static str = "pray";
    const DESCRIPTION: &'static str =
        "Pray, in character, to the powers that watch over the character's location, race, profession or faction.";
    const PLANNED: bool = false;
    const HINT: &'static str = "Say what your character prays for.";
    type Arguments = Arguments;
    type Answer = Triggered;
}

impl AtOnce for Pray {
    async fn run(cx: &CommandCx<'_>, Arguments { message }: Arguments) -> Result<CommandOutcome<Triggered>> {
        let prayer = Prayer { player_id: cx.player.to_string(), message: message.0 };
        let heard = queue(cx.tx().await?, cx.caller, &cx.campaign.to_string(), &prayer).await?;
        // The table is not told of a prayer that nobody answers: whoever is asked already answers the former one.
        if heard.triggered.is_empty() {
            return Ok(CommandOutcome::ephemeral(heard, format!("{} prays, and nobody answers yet", cx.name)));
        }
        Ok(CommandOutcome::public(cx, Type::System, heard, format!("{} prays", cx.name)))
    }
}
