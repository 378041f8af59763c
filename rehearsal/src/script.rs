//! A script: replies as data, in the order in which they are used.
//!
//! Files, `PUT /rehearsal/script` and tests in Rust use the same form. A script is checked as a whole before it is used,
//! so that it is never applied in part. To add a condition, add a field to [`When`] and a line to its `matches`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::reply::Reply;

/// The most steps of one script.
pub const STEPS_MAX: usize = 100_000;

/// Replies that are used in order, and what to do if no step applies.
///
/// The default script has no steps: the persona answers everything. As JSON, for example:
///
/// ```json
/// {"steps": [
///    {"reply": {"status": 429, "retry_after": 1}},
///    {"when": {"contains": "ale"}, "sticky": true, "reply": {"text": "Two coppers.", "delay_ms": 200}},
///    {"reply": {"text": "Noted.", "tool_calls": [{"name": "NPC_memorize", "arguments": {"player_id": "a"}}]}}
///  ], "then": "default"}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Tried from first to last for each request. The first step that applies answers and is used up.
    pub steps: Vec<Step>,
    /// What answers if no step applies.
    pub then: Then,
}

/// A reply, and the condition for using it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The condition. Without one the step always applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// A sticky step is never used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sticky: bool,
    /// The answer.
    pub reply: Reply,
}

/// Conditions of a step. All given ones must be true.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Text that the last user message contains (case-sensitive).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// The requested model, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl When {
    /// Whether a request with this last user message and model fulfils the conditions.
    pub(crate) fn matches(&self, last_user: &str, model: &str) -> bool {
        self.contains.as_ref().is_none_or(|text| last_user.contains(text.as_str()))
            && self.model.as_ref().is_none_or(|name| name == model)
    }
}

/// What answers if no step applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// The persona.
    #[default]
    Default,
    /// The last reply again, or the persona if there was none.
    RepeatLast,
    /// 500 with code `script_exhausted`.
    Error,
}

/// Why a script was rejected.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// It is not JSON, or has an unknown field or a value of the wrong type.
    #[error("the script is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// A step that contradicts itself. `step` counts from 0.
    #[error("step {step} of the script: {reason}")]
    Step {
        /// Position in `steps`.
        step: usize,
        /// What to change.
        reason: String,
    },
    /// More than `STEPS_MAX` steps.
    #[error("the script has {0} steps; at most {STEPS_MAX} are allowed")]
    TooLong(usize),
}

impl Script {
    /// Parses and checks a script.
    ///
    /// # Errors
    /// [`ScriptError`] with the first mistake.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(text)?;
        script.check()?;
        Ok(script)
    }

    /// Uses these replies (or steps) in order, then the persona.
    pub fn replies<I>(steps: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Step>,
    {
        Self { steps: steps.into_iter().map(Into::into).collect(), then: Then::Default }
    }

    /// Gives the same reply to every request.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        Self::replies([Step::from(reply).sticky()])
    }

    /// Sets what answers if no step applies.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// Checks every step. A script from outside must be checked; one built in Rust need not.
    ///
    /// # Errors
    /// [`ScriptError`] with the first step that contradicts itself.
    pub fn check(&self) -> Result<(), ScriptError> {
        if self.steps.len() > STEPS_MAX {
            return Err(ScriptError::TooLong(self.steps.len()));
        }
        for (step, entry) in self.steps.iter().enumerate() {
            entry.reply.check().map_err(|reason| ScriptError::Step { step, reason: reason.to_owned() })?;
        }
        Ok(())
    }
}

impl Step {
    /// Applies only when the last user message contains `text`.
    #[must_use]
    pub fn when_contains(mut self, text: impl Into<String>) -> Self {
        self.when.get_or_insert_default().contains = Some(text.into());
        self
    }

    /// Applies only to requests for this model.
    #[must_use]
    pub fn when_model(mut self, model: impl Into<String>) -> Self {
        self.when.get_or_insert_default().model = Some(model.into());
        self
    }

    /// Never used up.
    #[must_use]
    pub fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self { reply, ..Self::default() }
    }
}
