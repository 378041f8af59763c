//! The answers of commands.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::turns::{
    start::{TurnAnswer, TurnEnded},
    view::Visibility,
};
use world::rules::answers::ResolvedOutcome;

/// The result of a command.
#[derive(Debug, Serialize, ToSchema)]
pub struct CommandView {
    pub command: &'static str,
    /// Whether everyone may read it.
    #[schema(inline)]
    pub visibility: Visibility,
    #[schema(value_type = Object)]
    pub result: Value,
    /// A sentence for people.
    pub message: String,
    /// The turn that decided the result. Only `check`, `do`, `use_skill` and `rest` have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
}

impl TurnAnswer for CommandView {
    fn ended(&self) -> Option<TurnEnded> {
        self.turn_id.map(TurnEnded::succeeded)
    }
}

/// A message that a command wrote.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageSaid {
    /// The message.
    pub message_id: Uuid,
}

/// A character's new location.
#[derive(Serialize, ToSchema)]
pub(super) struct CharacterMoved {
    /// The character.
    pub character_id: Uuid,
    /// The new location.
    pub location: String,
    /// The character's new version.
    pub version: i64,
}

/// The result of using a skill.
#[derive(Serialize, ToSchema)]
pub(super) struct SkillUsed {
    #[serde(flatten)]
    #[schema(inline)]
    pub outcome: ResolvedOutcome,
    /// The character or NPC on whom the skill was used, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_id: Option<Uuid>,
}
