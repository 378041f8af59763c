//! What a turn is about.

use uuid::Uuid;

use super::kind::TurnKind;
use crate::prompt::key::talk_head;

/// What a turn is about: its kind, and who takes part.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub kind: TurnKind,
    pub campaign: Uuid,
    /// The NPC or owner that answers, the session whose AI has the turn, or the character whose action is decided or planned.
    pub entity: Uuid,
    /// None for a session's turn.
    pub player: Option<Uuid>,
}

impl Subject {
    /// A turn about what a character does.
    #[must_use]
    pub fn of_character(kind: TurnKind, campaign: Uuid, player: Uuid) -> Self {
        Self { kind, campaign, entity: player, player: Some(player) }
    }

    /// The version head of the conversation.
    #[must_use]
    pub fn talk_head(&self) -> String {
        talk_head(self.entity, self.player.unwrap_or_default())
    }
}
