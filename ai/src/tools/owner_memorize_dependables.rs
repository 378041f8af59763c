//! `OWNER_memorize_dependables`: an owner tells all NPCs that depend on it something about a player.

use super::{
    answers::BroadcastMade,
    arguments::Memorize,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use edge::limits::check_rows_more;
use world::memory::service::{broadcast, dependents};

pub(super) struct OwnerMemorizeDependables;

impl ToolSpec for OwnerMemorizeDependables {
    const NAME: &'static str = "OWNER_memorize_dependables";
    const DESCRIPTION: &'static str =
        "Make every character that answers to you remember something about a player. You do not remember it yourself.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Memorize;
    type Answer = BroadcastMade;

    async fn run(cx: &ToolCx<'_>, arguments: Memorize) -> Result<Self::Answer> {
        let new = arguments.checked(cx, "npc", "broadcast").await?;
        let hearers = dependents(cx.tx().await?, cx.entity).await?;
        cx.changes(hearers.saturating_sub(1)).await?;
        check_rows_more(cx.tx().await?, cx.rows_max, "memory", hearers).await?;
        let (broadcast_id, npc_ids) = broadcast(cx.tx().await?, cx.entity, &new).await?;
        Ok(BroadcastMade { broadcast_id, count: npc_ids.len(), npc_ids })
    }
}
