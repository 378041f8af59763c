//! `get_encounter`: the fight in progress.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    answers::FightsTold,
    spec::{ActorKind, Asking, Described, ToolCx, ToolSpec},
};
use crate::frontends::question::{Asked, Heard, Question};
use base::error::Result;
use world::sessions::combat::{self, InProgress};

pub(super) struct GetEncounter;

/// Which fight.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The fight to read, by id. Without it, all fights in progress.
    #[serde(default)]
    encounter_id: Option<String>,
}

impl ToolSpec for GetEncounter {
    const NAME: &'static str = "get_encounter";
    const DESCRIPTION: &'static str =
        "Read the fight in progress: its round, its turn and who takes part. The answer says if there is none.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const LISTED: bool = false;
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = Described<InProgress, FightsTold>;

    /// If the frontend reported a fight, asks for its present state.
    fn asks(_: &Asking<'_>, _: &Arguments) -> Option<Question> {
        Some(Question { asked: Asked::CombatStateRefresh, data: json!({}) })
    }

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let fights = combat::going_on(cx.tx().await?, cx.campaign, cx.session.map(|s| s.id), cx.reader).await?;
        // If the frontend was connected and does not answer, its fight may have gone on unseen.
        let stale = matches!(cx.heard, Some(Heard::Failed(_) | Heard::Nobody { left: true }));
        let fights = if stale { fights.into_iter().map(combat::Fight::gone_stale).collect() } else { fights };
        Ok(InProgress::of(fights, arguments.encounter_id.as_deref())?.into())
    }
}
