//! `change_npc_behavior`: an owner makes one of its NPCs behave in a way, towards everybody or towards one player.

use entity::shapes::NpcBehavior;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answers::BehaviorChanged,
    arguments::text,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::{clock, error::Result};
use edge::auth::player;
use world::{npcs::changes::add_behavior, owners::domain::Domain};

pub(super) struct ChangeNpcBehavior;

/// Who changes, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// An NPC that answers to you, by id or slug.
    npc_id: String,
    /// How it behaves from now on, such as `Serves no thieves.`
    #[schemars(length(min = 1, max = 500))]
    behavior: String,
    /// The player towards whom it behaves so. Leave it out if it behaves so towards everybody.
    #[serde(default)]
    player_id: Option<String>,
}

impl ToolSpec for ChangeNpcBehavior {
    const NAME: &'static str = "change_npc_behavior";
    const DESCRIPTION: &'static str =
        "Change how an NPC that answers to you behaves, towards everybody or towards one player.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = BehaviorChanged;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let behavior = text(&arguments.behavior, "/behavior", 500)?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let npc = domain.npc_to_change(tx, &arguments.npc_id, "/npc_id").await?;
        let player_id = match &arguments.player_id {
            Some(named) => Some(player::id(tx, cx.campaign, named).await?),
            None => None,
        };
        let behavior = NpcBehavior { text: behavior.to_owned(), player_id, created_at: clock::now() };
        add_behavior(tx, &npc, &behavior).await?;
        Ok(BehaviorChanged { npc_id: npc.id.0, behavior })
    }
}
