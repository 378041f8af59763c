//! `do`: something done in the world. The rules decide it by a turn, and a narrator tells it where models are shown to players.

use entity::message::Author;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{CommandSpec, Visibility, check::told, http::CommandView};
use crate::{
    error::{Error, Result},
    http::Reply,
    messages::service::NewMessage,
    tools::resolve::values::Words,
    turns::rules::{Resolution, Teller},
};

/// How the table reads who tells what happened.
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

/// What is done, out of checked arguments.
///
/// # Errors
/// `validation_failed` if they do not fit.
pub fn deed(arguments: Value) -> Result<String> {
    let Arguments { message } = crate::tools::arguments::read(arguments)?;
    Ok(message.0)
}

/// What was decided and told, as a sentence for people and as what the table reads.
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
        // A fight has told it.
        Some(sentence) => (sentence.clone(), None),
        None => {
            let (sentence, decided) = told(&resolution.parsed, teller.name, message);
            (sentence, Some(decided))
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

/// The answer of the command, given by itself.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn answer(resolution: &Resolution, teller: &Teller<'_>) -> Result<(Reply, Vec<NewMessage>)> {
    let (visibility, (message, messages)) = match &resolution.unclear {
        Some(why) => (Visibility::Ephemeral, (why.clone(), Vec::new())),
        None => (Visibility::Public, spoken(resolution, teller)),
    };
    let result = serde_json::to_value(resolution).map_err(Error::internal)?;
    let view =
        CommandView { command: <Do as CommandSpec>::NAME, visibility, result, message, turn_id: Some(teller.turn) };
    Ok((Reply::ok(&view)?, messages))
}
