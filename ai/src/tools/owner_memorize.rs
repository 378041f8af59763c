//! `OWNER_memorize`: an owner remembers something about a player, only for itself.

use super::{
    answers::MemoryMade,
    arguments::Memorize,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use world::memory::service::remember;

pub(super) struct OwnerMemorize;

impl ToolSpec for OwnerMemorize {
    const NAME: &'static str = "OWNER_memorize";
    const DESCRIPTION: &'static str =
        "Remember something about a player, privately: those who answer to you do not learn it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Memorize;
    type Answer = MemoryMade;

    async fn run(cx: &ToolCx<'_>, arguments: Memorize) -> Result<Self::Answer> {
        let new = arguments.checked(cx, "owner", "private").await?;
        Ok(MemoryMade { memory_id: remember(cx.tx().await?, cx.rows_max, &new).await? })
    }
}
