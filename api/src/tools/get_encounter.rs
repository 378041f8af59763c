//! `get_encounter`: the fight that goes on.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ActorKind, ToolCx, ToolSpec};
use crate::{
    encounters::combat,
    error::{Error, Result},
};

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
        let mut fights = combat::going_on(cx.tx, cx.campaign).await?;
        if let Some(wanted) = arguments.encounter_id {
            let found = fights.into_iter().find(|fight| fight.id.to_string() == wanted);
            return found.map(|fight| fight.shown).ok_or_else(|| Error::not_found("encounter"));
        }
        Ok(match fights.len() {
            0 => json!({ "in_combat": false, "message": "No active encounter" }),
            1 => fights.remove(0).shown,
            several => {
                let shown: Vec<_> = fights.into_iter().map(|fight| fight.shown).collect();
                json!({ "in_combat": true, "active_count": several, "encounters": shown })
            }
        })
    }
}
