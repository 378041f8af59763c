//! The kinds of entities that an AI can speak for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of entity that speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    Npc,
    Owner,
}

impl EntityKind {
    /// The name of the kind's table and the name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EntityKind::Npc => "npc",
            EntityKind::Owner => "owner",
        }
    }
}
