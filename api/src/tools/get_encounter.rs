//! `get_encounter`: the fight that goes on.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ActorKind, ToolCx, ToolSpec};
use crate::{error::Result, sessions::combat};

pub(super) struct GetEncounter;

/// Which fight.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Which fight, if there are several.
    #[serde(default)]
    encounter_id: Option<String>,
}

impl ToolSpec for GetEncounter {
    const NAME: &'static str = "get_encounter";
    const DESCRIPTION: &'static str =
        "See the fight that goes on: round, turn and who takes part, or that there is none.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const LISTED: bool = false;
    const INFORMS: bool = true;
    type Arguments = Arguments;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let fights = combat::going_on(cx.tx, cx.campaign, cx.session.map(|s| s.id)).await?;
        combat::answer(combat::seen_by(cx.reader.role, fights), arguments.encounter_id.as_deref())
    }
}
