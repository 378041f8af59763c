//! `change_npc_behavior`: an owner changes how one of its NPCs feels, and can give the NPC a memory that explains why.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::BehaviorChanged,
    arguments::line,
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
    npcs::changes::set_disposition,
    owners::domain::Domain,
};

pub(super) struct ChangeNpcBehavior;

/// Who changes, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// An NPC that answers to you, by id or slug.
    npc_id: String,
    /// Its new disposition, such as `hostile` or `wary of strangers`.
    #[schemars(length(min = 1, max = 200))]
    behavior_type: String,
    /// The player about whom the NPC remembers something: the player attribute of the action.
    #[serde(default)]
    player_id: Option<String>,
    /// What the NPC remembers about that player.
    #[serde(default)]
    #[schemars(length(min = 1, max = 2000))]
    memory_entry: Option<String>,
}

impl ToolSpec for ChangeNpcBehavior {
    const NAME: &'static str = "change_npc_behavior";
    const DESCRIPTION: &'static str = "Change the disposition of an NPC that answers to you. It can also remember something about a \
        player, as the reason.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = BehaviorChanged;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let disposition = line(&arguments.behavior_type, "/behavior_type")?;
        let memory = match (&arguments.player_id, &arguments.memory_entry) {
            (Some(player), Some(text)) => Some((player, memory::service::text(text, "/memory_entry")?)),
            (None, None) => None,
            (Some(_), None) => return Err(together("/memory_entry")),
            (None, Some(_)) => return Err(together("/player_id")),
        };
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let npc = domain.npc(tx, &arguments.npc_id, "/npc_id").await?;
        let mut result = json!({ "npc_id": npc.id, "disposition": disposition, "before": npc.disposition });
        if let Some((player, text)) = memory {
            let player = match subject::of_turn(cx.player, player) {
                Some(player) => player,
                None => subject::named(tx, cx.campaign, cx.bound(), player).await?,
            };
            cx.changes(1).await?;
            check_rows(tx, cx.rows_max, "memory").await?;
            let new = NewMemory {
                campaign: cx.campaign,
                holder_type: "npc",
                holder: npc.id.0,
                player,
                text,
                source: "broadcast",
                author: cx.key,
                turn: cx.turn,
            };
            let id = insert_told(tx, &new).await?;
            if let Value::Object(members) = &mut result {
                members.insert("memory_id".to_owned(), json!(id));
            }
        }
        set_disposition(tx, npc.id.0, disposition).await?;
        Ok(result)
    }
}

fn together(pointer: &'static str) -> Error {
    Error::invalid(pointer, "required", "Give `player_id` and `memory_entry` together, or neither.")
}
