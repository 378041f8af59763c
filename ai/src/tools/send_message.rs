//! `send_message`: an owner says something to a player, itself or through one of its NPCs.

use entity::message::Author;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answers::MessageSent,
    arguments::text,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use edge::limits::check_rows;
use world::{messages::service::NewMessage, owners::domain::Domain};

pub(super) struct SendMessage;

/// What is said, and to whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Who hears it: a player in your domain, by id or slug.
    target_id: String,
    /// What is said.
    #[schemars(length(min = 1, max = 2000))]
    message: String,
    /// The NPC that says it in your place. It must answer to you.
    #[serde(default)]
    via_npc_id: Option<String>,
}

impl ToolSpec for SendMessage {
    const NAME: &'static str = "send_message";
    const DESCRIPTION: &'static str = "Say something to a player in your domain, yourself or through an NPC that answers to you. Only that \
        player hears it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = MessageSent;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let message = text(&arguments.message, "/message", 2000)?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let via = match &arguments.via_npc_id {
            Some(name) => Some(domain.npc(tx, name, "/via_npc_id").await?),
            None => None,
        };
        let player = domain.player(tx, &arguments.target_id, "/target_id").await?;
        check_rows(tx, cx.rows_max, "message").await?;
        let speaker = via.map_or(domain.owner.name, |npc| npc.name);
        let said = NewMessage {
            whisper_to: vec![player.id.0.to_string()],
            turn_id: cx.turn,
            ..NewMessage::chat(Author::Ai, &speaker, message.to_owned())
        };
        let id = said.id;
        cx.work.say(vec![said]).await?;
        Ok(MessageSent { message_id: id })
    }
}
