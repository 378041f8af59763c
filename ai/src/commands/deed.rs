//! `do`: a character does something in the world. The rules decide it in a turn. If players may read models, a narrator tells it.

use entity::message::Author;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{answer::CommandView, spec::CommandSpec};
use crate::turns::{
    rules::{job::Teller, resolution::Resolution, told::Told},
    view::Visibility,
};
use base::error::{Error, Result};
use world::{messages::service::NewMessage, rules::values::Words};

/// The speaker's name in messages that narrate what happened.
const NARRATOR: &str = "Narrator";

pub(super) struct Do;

/// What is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What the character does, in the player's words.
    message: Words<2000>,
}

impl CommandSpec for Do {
    const NAME: &'static str = "do";
    const DESCRIPTION: &'static str = "Do something in the world, in character: sneak, climb, attack, talk somebody into something, search, use an item, end one's turn in a fight.";
    const HINT: &'static str = "Say what your character does.";
    type Arguments = Arguments;
    type Answer = Resolution;
}

/// The action from checked arguments.
///
/// # Errors
/// `validation_failed` if the arguments are invalid.
pub fn deed(arguments: Value) -> Result<String> {
    let Arguments { message } = crate::tools::arguments::read(arguments)?;
    Ok(message.0)
}

/// The decision and its narration, as a sentence for people and as messages for the table.
#[must_use]
pub fn spoken(resolution: &Resolution, teller: &Teller<'_>) -> (String, Vec<NewMessage>) {
    let message = |kind, content| NewMessage {
        kind,
        scene_id: teller.scene,
        player_id: Some(teller.player),
        turn_id: Some(teller.turn),
        ..NewMessage::chat(Author::Player, teller.name, content)
    };
    let words = teller.words.map(|words| message(entity::message::Type::Chat, words.to_owned()));
    let (sentence, decided) = match &resolution.told {
        // The fight has told it already.
        Some(sentence) => (sentence.clone(), None),
        None => {
            let told = Told::of(&resolution.parsed, teller.name);
            (told.sentence.clone(), Some(told.message(message)))
        }
    };
    let narration = resolution.narration.as_ref().map(|text| NewMessage {
        scene_id: teller.scene,
        turn_id: Some(teller.turn),
        ..NewMessage::chat(Author::Ai, NARRATOR, text.clone())
    });
    let sentence = match &resolution.narration {
        Some(text) => format!("{sentence}\n\n{text}"),
        None => sentence,
    };
    (sentence, words.into_iter().chain(decided).chain(narration).collect())
}

/// The command's answer, when it was given directly.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn answer(resolution: Resolution, teller: &Teller<'_>) -> Result<(CommandView, Vec<NewMessage>)> {
    let (visibility, (message, messages)) = match &resolution.unclear {
        Some(why) => (Visibility::Ephemeral, (why.clone(), Vec::new())),
        None => (Visibility::Public, spoken(&resolution, teller)),
    };
    let result = serde_json::to_value(resolution).map_err(Error::internal)?;
    let view =
        CommandView { command: <Do as CommandSpec>::NAME, visibility, result, message, turn_id: Some(teller.turn) };
    Ok((view, messages))
}
