//! The kinds of turns, and what brings them about.

use entity::kind::EntityKind;
use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};
use utoipa::ToSchema;

/// The kind of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    Npc,
    Owner,
    Gm,
    Rules,
    Planner,
}

impl TurnKind {
    /// The name in the database, in JSON and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npc => "npc",
            Self::Owner => "owner",
            Self::Gm => "gm",
            Self::Rules => "rules",
            Self::Planner => "planner",
        }
    }

    /// Whose answer it is: an NPC's or an owner's, or neither.
    #[must_use]
    pub fn of_entity(self) -> Option<EntityKind> {
        match self {
            Self::Npc => Some(EntityKind::Npc),
            Self::Owner => Some(EntityKind::Owner),
            Self::Gm | Self::Rules | Self::Planner => None,
        }
    }

    /// The kind with this name in the database.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(name.into_deserializer()).map_err(|_: value::Error| ()).ok()
    }
}

impl From<EntityKind> for TurnKind {
    fn from(kind: EntityKind) -> Self {
        match kind {
            EntityKind::Npc => Self::Npc,
            EntityKind::Owner => Self::Owner,
        }
    }
}

/// What brought a turn about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Somebody asked for it.
    #[default]
    Player,
    /// What players did mattered enough to an NPC or owner.
    Reaction,
    /// A player prayed.
    Prayer,
    /// The NPC or owner opens a conversation.
    Greeting,
}
