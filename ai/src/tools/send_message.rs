//! `send_message`: an owner says something to a player, or makes one of its NPCs know something about the turn's player.

use entity::{message::Author, npc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    answers::MessageSent,
    arguments::text,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use edge::limits::check_rows;
use world::{
    memory::{
        self,
        service::{NewMemory, insert_told},
        subject,
    },
    messages::service::NewMessage,
    owners::domain::{Domain, find_npc, find_player},
};

pub(super) struct SendMessage;

/// What is said, and to whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Who hears it: a player in your domain, or an NPC that answers to you. An id or slug.
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
    const DESCRIPTION: &'static str = "Say something to a player in your domain, yourself or through an NPC that answers to you; only \
        that player hears it. Or tell an NPC that answers to you something about the player who speaks to you; it will remember it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = MessageSent;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let message = text(&arguments.message, "/message", 2000)?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let via = match &arguments.via_npc_id {
            Some(name) => Some(domain.npc(tx, name, "/via_npc_id").await?),
            None => None,
        };
        if let Some(player) = find_player(tx, cx.campaign, &arguments.target_id).await? {
            domain.reaches(&player)?;
            let id = whisper(cx, &domain, via.as_ref(), player.id.0, message).await?;
            return Ok(json!({ "message_id": id }));
        }
        let npc = find_npc(tx, cx.campaign, &arguments.target_id).await?.ok_or_else(|| {
            let why = "There is no such player or NPC in this campaign.";
            Error::invalid("/target_id", "unknown_reference", why)
        })?;
        domain.holds(&npc)?;
        let id = tell(cx, via.as_ref(), npc.id.0, message).await?;
        Ok(json!({ "memory_id": id }))
    }
}

/// A chat message that only the player reads.
async fn whisper(
    cx: &ToolCx<'_>,
    domain: &Domain,
    via: Option<&npc::Model>,
    player: Uuid,
    message: &str,
) -> Result<Uuid> {
    check_rows(cx.tx().await?, cx.rows_max, "message").await?;
    let speaker = via.map_or(domain.owner.name.as_str(), |npc| npc.name.as_str());
    let said = NewMessage {
        whisper_to: vec![player.to_string()],
        turn_id: cx.turn,
        ..NewMessage::chat(Author::Ai, speaker, message.to_owned())
    };
    let id = said.id;
    cx.work.say(vec![said]).await?;
    Ok(id)
}

/// A memory of an NPC about the turn's player.
async fn tell(cx: &ToolCx<'_>, via: Option<&npc::Model>, npc: Uuid, message: &str) -> Result<Uuid> {
    let player = cx.player.and_then(|(id, _)| subject::of_turn(cx.player, &id.to_string())).ok_or_else(|| {
        let why =
            "An NPC remembers things about a player. Name the player whose turn this is as `player_id` of the request.";
        Error::invalid("/target_id", "required", why)
    })?;
    check_rows(cx.tx().await?, cx.rows_max, "memory").await?;
    let told = via.map_or_else(|| message.to_owned(), |via| format!("{} said: {message}", via.name));
    let new = NewMemory {
        campaign: cx.campaign,
        holder_type: "npc",
        holder: npc,
        player,
        text: memory::service::text(&told, "/message")?,
        source: "broadcast",
        author: cx.key,
        turn: cx.turn,
    };
    insert_told(cx.tx().await?, &new).await
}
