//! `NPC_memorize`: an NPC remembers something about a player.

use super::{
    answers::MemoryMade,
    arguments::Memorize,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use world::{memory::service::remember, npcs::MEMORY_TOOL};

pub(super) struct NpcMemorize;

impl ToolSpec for NpcMemorize {
    const NAME: &'static str = MEMORY_TOOL;
    const DESCRIPTION: &'static str = "Remember something about a player, for yourself, for all later conversations.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Npc];
    const INFORMS: bool = false;
    type Arguments = Memorize;
    type Answer = MemoryMade;

    async fn run(cx: &ToolCx<'_>, arguments: Memorize) -> Result<Self::Answer> {
        let new = arguments.checked(cx, "npc", "personal").await?;
        Ok(MemoryMade { memory_id: remember(cx.tx().await?, cx.rows_max, &new).await? })
    }
}
