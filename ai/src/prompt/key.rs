//! The key of a base prompt, and the names under which requests ask for it.

use crate::corpora::CorpusKey;
use edge::tenants::tasks::Task;
use entity::kind::EntityKind;
use llm::ReplyMode;
use uuid::Uuid;

/// The names of the campaign, the entity and the player in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    pub tenant: Uuid,
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
}

/// The key of a base prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptKey {
    pub campaign: Uuid,
    pub entity: Uuid,
    pub player: Uuid,
    pub mode: ReplyMode,
}

impl PromptKey {
    /// The version head of what the entity remembers of the player.
    #[must_use]
    pub fn memory_head(&self) -> String {
        format!("memory:{}:{}", self.entity, self.player)
    }

    /// The version head of their conversation.
    #[must_use]
    pub fn talk_head(&self) -> String {
        talk_head(self.entity, self.player)
    }
}

impl From<&PromptKey> for CorpusKey {
    fn from(key: &PromptKey) -> Self {
        Self { campaign: key.campaign, holder: key.entity, player: Some(key.player) }
    }
}

/// The version head of a conversation. A session's AI talks to the nil id.
#[must_use]
pub fn talk_head(entity: Uuid, player: Uuid) -> String {
    format!("talk:{entity}:{player}")
}

/// What a model is asked for when an entity answers.
#[must_use]
pub fn task_of(kind: EntityKind) -> Task {
    match kind {
        EntityKind::Npc => Task::Npc,
        EntityKind::Owner => Task::Owner,
    }
}
