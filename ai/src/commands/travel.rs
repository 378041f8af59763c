//! `move`: the character goes to another location.

use entity::message::Type;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{AtOnce, CharacterMoved, CommandCx, CommandSpec, Done};
use base::error::{Error, Result};
use edge::http::validate;
use world::{characters, rules::values::Words};

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
    async fn run(cx: &CommandCx<'_>, Arguments { location }: Arguments) -> Result<Done> {
        let version = characters::service::move_to(cx.tx().await?, cx.player, &location.0).await?;
        let result = json!({ "character_id": cx.player, "location": location.0, "version": version });
        Ok(Done::public(cx, Type::System, result, format!("{} goes to {}", cx.name, location.0)))
    }
}
