//! The `settings` of a campaign. Only settings that the server reads are allowed there. Clients keep their own values
//! in `extensions`.
//!
//! To add a setting, add a member to [`CampaignSettings`] and its name to `NAMES`.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{campaigns::prompt_section::Section, memory::subject::ABOUT_OTHERS};
use base::{
    error::{Error, Result},
    json,
};
use edge::http::{body, validate};
use edge::tenants::commands;

const NAMES: [&str; 4] = ["planner_commands", "prompt_budgets", ABOUT_OTHERS, "gm_encounters"];
const BUDGET_MAX: u32 = 200_000;

/// A campaign's settings. A setting that is absent or null has its default.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignSettings {
    /// The commands that the planner may choose, of those that the tenant allows. By default all of these.
    #[schema(max_items = 64)]
    pub planner_commands: Option<Vec<String>>,
    /// The largest number of tokens in a section of a prompt, 0 to 200000, by the name of the section.
    pub prompt_budgets: Option<BTreeMap<String, Option<u32>>>,
    /// Whether a turn's model may also remember things about other players at the same location. Otherwise it can do so
    /// only about the turn's own player.
    #[schema(default = false)]
    pub memories_about_others: Option<bool>,
    /// Whether the game master's AI gets the tools that begin fights while there is none.
    #[schema(default = false)]
    pub gm_encounters: Option<bool>,
}

/// Checks that the server knows every setting that a client sends, and that the values are valid.
///
/// # Errors
/// `validation_failed` that points to the first unknown or invalid setting.
pub fn check(settings: &Value) -> Result<()> {
    let mut sent = settings.clone();
    // A null removes a setting, even one that only an earlier server knew.
    if let Value::Object(members) = &mut sent {
        members.retain(|_, value| !value.is_null());
    }
    let read: CampaignSettings = body::typed(sent).map_err(|error| error.below("/settings"))?;
    if let Some(names) = &read.planner_commands {
        let known = commands::are_known(names);
        known.map_err(|e| Error::invalid("/settings/planner_commands", "invalid_value", e.to_string()))?;
    }
    for (name, tokens) in read.prompt_budgets.iter().flatten() {
        let pointer = format!("/settings/prompt_budgets/{}", json::escape(name));
        if Section::named(name).is_none() {
            return Err(Error::invalid(pointer, "unknown_field", "A prompt has no section with this name."));
        }
        if tokens.is_some_and(|tokens| tokens > BUDGET_MAX) {
            return Err(Error::invalid(pointer, "invalid_value", format!("must be from 0 to {BUDGET_MAX} tokens")));
        }
    }
    Ok(())
}

/// Like [`check`], for settings that are stored or in a file. Unknown settings are accepted, because an earlier server
/// may have known them.
pub fn stored_fit(settings: &Extensions, cx: &()) -> garde::Result {
    let read = settings.iter().filter(|(name, _)| NAMES.contains(&name.as_str()));
    let read = read.map(|(name, value)| (name.clone(), value.clone())).collect();
    check(&Value::Object(read)).map_err(|error| garde::Error::new(error.detail.as_str()))?;
    validate::extensions(settings, cx)
}
