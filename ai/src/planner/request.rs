//! A request to plan a text, and the checks that need no database.

use base::error::{Code, Error, Result};
use edge::{caller::Caller, http::idempotency::IdempotencyKey};

use super::TEXT_CHARS_MAX;
use crate::state::Ai;

/// The operator's switch for the planner.
pub const SWITCH: &str = "planner";

/// A text to plan.
#[derive(Clone, Debug)]
pub struct ActRequest {
    pub campaign: String,
    pub player: String,
    /// Without whitespace around it.
    pub text: String,
    /// The scene in which it happens, by id or slug. Alternatively, `channel`.
    pub scene: Option<String>,
    pub channel: Option<String>,
    pub dry_run: bool,
    pub key: Option<IdempotencyKey>,
}

/// Checks that the planner is on for a caller.
///
/// # Errors
/// `feature_disabled`.
pub fn is_on(app: &Ai, caller: &Caller) -> Result<()> {
    let features = &caller.tenant.settings.features;
    if !app.settings.planner.enabled || caller.tenant.switched_off.iter().any(|name| name == SWITCH) {
        return Err(Error::new(Code::FeatureDisabled, "The planner is switched off on this server."));
    }
    if !features.planner || !features.llm {
        return Err(Error::new(Code::FeatureDisabled, "The planner is switched off for this tenant."));
    }
    Ok(())
}

/// Checks that the planner is on for a caller and that the text has a valid length.
///
/// # Errors
/// `feature_disabled`, `validation_failed` at `/message`.
pub fn may(app: &Ai, caller: &Caller, message: &str) -> Result<()> {
    is_on(app, caller)?;
    if message.trim().is_empty() || message.trim().chars().count() > TEXT_CHARS_MAX {
        let rule = format!("Write 1 to {TEXT_CHARS_MAX} characters.");
        return Err(Error::invalid("/message", "invalid_value", rule));
    }
    Ok(())
}
