//! What a campaign decides for itself: `settings`. It holds what the server reads and nothing else; what clients keep of their own
//! has its place in `extensions`.
//!
//! To add a setting: a member of [`CampaignSettings`], its name in `NAMES`.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    commands,
    error::{Error, Result},
    http::{body, validate},
    json,
    memory::subject::ABOUT_OTHERS,
    prompt::section::Section,
};

const NAMES: [&str; 4] = ["planner_commands", "prompt_budgets", ABOUT_OTHERS, "gm_encounters"];
const BUDGET_MAX: u32 = 200_000;

/// A campaign's settings; what is absent or null has its default.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignSettings {
    /// The commands that the planner may choose, of those that the tenant allows; all of these by default.
    #[schema(max_items = 64)]
    pub planner_commands: Option<Vec<String>>,
    /// Tokens that sections of prompts may fill at most, 0 to 200000 each, by the section's name.
    pub prompt_budgets: Option<BTreeMap<String, Option<u32>>>,
    /// Whether the model may also remember about players that are at the same location, and not only about the turn's own.
    #[schema(default = false)]
    pub memories_about_others: Option<bool>,
    /// Whether the game master's AI is offered the tools that begin fights while there is none.
    #[schema(default = false)]
    pub gm_encounters: Option<bool>,
}

/// Whether what a client sends as `settings` is all read by the server, and fits.
///
/// # Errors
/// `validation_failed` that points to the first setting that nothing reads or that does not fit.
pub fn check(settings: &Value) -> Result<()> {
    let mut sent = settings.clone();
    // What is set to null goes, also what an earlier server took.
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
            return Err(Error::invalid(pointer, "unknown_field", "There is no such section of a prompt."));
        }
        if tokens.is_some_and(|tokens| tokens > BUDGET_MAX) {
            return Err(Error::invalid(pointer, "invalid_value", format!("0 to {BUDGET_MAX} tokens.")));
        }
    }
    Ok(())
}

/// The same for settings that are stored or in a file. What nothing reads is let be: an earlier server took it.
pub fn stored_fit(settings: &Extensions, cx: &()) -> garde::Result {
    let read = settings.iter().filter(|(name, _)| NAMES.contains(&name.as_str()));
    let read = read.map(|(name, value)| (name.clone(), value.clone())).collect();
    check(&Value::Object(read)).map_err(|error| garde::Error::new(error.detail.as_str()))?;
    validate::extensions(settings, cx)
}
