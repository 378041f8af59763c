//! `ooc`: a message out of character that everyone reads.

use entity::message::Type;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::MessageSaid,
    spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec},
};
use crate::turns::view::Visibility;
use base::error::Result;
use world::{
    messages::service::{NewMessage, OOC},
    rules::values::Words,
};

pub(super) struct Ooc;

/// What to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The words, as the player wrote them.
    message: Words<2000>,
}

impl CommandSpec for Ooc {
    const NAME: &'static str = "ooc";
    const DESCRIPTION: &'static str = "Say something out of character to the people at the table, such as a remark on the game, the rules or a break.";
    const FOR_FALLEN: bool = true;
    const HINT: &'static str = "Say what the others should read.";
    type Arguments = Arguments;
    type Answer = MessageSaid;
}

impl AtOnce for Ooc {
    async fn run(cx: &CommandCx<'_>, Arguments { message }: Arguments) -> Result<CommandOutcome<MessageSaid>> {
        // A text for the planner is in the history already. Do not write the same words twice.
        let said = cx.said.filter(|(_, words)| words.trim() == message.0);
        let (message_id, messages) = match said {
            Some((id, _)) => (id, Vec::new()),
            None => {
                let told = cx.tell(Type::Chat, message.0.clone());
                (told.id, vec![NewMessage { flavor: Some(OOC.to_owned()), ..told }])
            }
        };
        let result = MessageSaid { message_id };
        Ok(CommandOutcome { visibility: Visibility::Public, result, message: message.0, messages, call: None })
    }
}
