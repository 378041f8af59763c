//! The tasks that models do, and the model profile for each.

use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// The words and calls of an NPC.
    Npc,
    /// The words and calls of an owner.
    Owner,
    /// A turn of a session's AI.
    Gm,
    /// Which rule a player's words need.
    Classify,
    /// The telling of a result that is decided.
    Narrate,
    /// Which command a player's words mean.
    Plan,
    /// What is worth remembering of a text.
    Extract,
}

impl Task {
    /// Its member of [`TaskModels`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npc => "npc",
            Self::Owner => "owner",
            Self::Gm => "gm",
            Self::Classify => "classify",
            Self::Narrate => "narrate",
            Self::Plan => "plan",
            Self::Extract => "extract",
        }
    }
}

/// The model profile for each task, by slug. A task without one uses the tenant's choice, and then the default model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TaskModels {
    /// Turns of NPCs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc: Option<String>,
    /// Turns of owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Turns of a session's AI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gm: Option<String>,
    /// Finding the rule that a player's words need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classify: Option<String>,
    /// Telling what the rules decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrate: Option<String>,
    /// Planning a command from a player's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Extracting what is worth remembering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

impl TaskModels {
    /// The slugs that are set, with the names of their tasks.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            (Task::Npc, &self.npc),
            (Task::Owner, &self.owner),
            (Task::Gm, &self.gm),
            (Task::Classify, &self.classify),
            (Task::Narrate, &self.narrate),
            (Task::Plan, &self.plan),
            (Task::Extract, &self.extract),
        ];
        all.into_iter().filter_map(|(task, slug)| Some((task.as_str(), slug.as_deref()?)))
    }

    /// The slug for a task.
    #[must_use]
    pub fn of(&self, task: Task) -> Option<&str> {
        self.named().find_map(|(name, slug)| (name == task.as_str()).then_some(slug))
    }
}

/// The slug for a task in choices that were read as plain JSON, such as those in a campaign's settings.
#[must_use]
pub fn slug_in(models: Option<&Value>, task: Task) -> Option<&str> {
    models?.get(task.as_str())?.as_str()
}
