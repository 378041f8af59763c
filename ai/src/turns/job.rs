//! A request for a turn of an NPC or owner.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::kind::Trigger;
use crate::{prompt::turn::Cause, tools::Earlier};
use edge::http::idempotency::IdempotencyKey;
use entity::{MessageId, kind::EntityKind};
use llm::ReplyMode;

/// What to do if the entity is already answering the player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Answer with 409.
    #[default]
    Reject,
    /// Wait until the place is free.
    Queue,
}

/// What to do with a failed turn's effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Revert them.
    #[default]
    Revert,
    /// Keep them.
    Keep,
}

impl OnFailure {
    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OnFailure::Revert => "revert",
            OnFailure::Keep => "keep",
        }
    }
}

/// A requested turn.
#[derive(Clone, Debug)]
pub struct Job {
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    pub action: String,
    /// The message whose words the action is, if the player has said them already.
    pub question: Option<MessageId>,
    /// The rules turn whose outcome the answer should tell.
    pub mechanics: Option<Uuid>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<IdempotencyKey>,
    /// Set if nobody requested the turn, because the entity reacts by itself.
    pub reaction: Option<Reaction>,
    pub way: Way,
}

impl Job {
    /// An answer to what a player does. The names are ids or slugs.
    #[must_use]
    pub fn new(campaign: &str, (kind, entity): (EntityKind, &str), player: &str, action: String) -> Self {
        Self {
            campaign: campaign.to_owned(),
            kind,
            entity: entity.to_owned(),
            player: player.to_owned(),
            action,
            question: None,
            mechanics: None,
            mode: None,
            on_busy: OnBusy::Reject,
            on_failure: OnFailure::Revert,
            key: None,
            reaction: None,
            way: Way::Answer,
        }
    }

    /// Why the entity has the turn.
    #[must_use]
    pub fn cause(&self) -> Cause {
        if self.way.greeting().is_some() {
            return Cause::Arrival;
        }
        if self.way.continues() {
            return Cause::Continuation;
        }
        self.reaction.as_ref().map_or(Cause::Action, |reaction| reaction.cause)
    }

    /// What brings the turn about.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        match &self.reaction {
            _ if self.way.greeting().is_some() => Trigger::Greeting,
            None => Trigger::Player,
            Some(reaction) if reaction.cause == Cause::Prayer => Trigger::Prayer,
            Some(_) => Trigger::Reaction,
        }
    }
}

/// How a turn comes to its answer.
#[derive(Clone, Debug, Default)]
pub enum Way {
    /// A model answers what a player does.
    #[default]
    Answer,
    /// The entity begins the conversation with a greeting, which is named by its index. No model is asked.
    Greeting(usize),
    /// The entity goes on from its last answer.
    Continuation,
    /// Another attempt at an answer, or at a greeting.
    Again(Box<Again>, Option<usize>),
}

impl Way {
    /// The greeting, by its index.
    #[must_use]
    pub fn greeting(&self) -> Option<usize> {
        match self {
            Way::Greeting(greeting) | Way::Again(_, Some(greeting)) => Some(*greeting),
            _ => None,
        }
    }

    /// The attempt, if the answer is tried again.
    #[must_use]
    pub fn again(&self) -> Option<&Again> {
        if let Way::Again(again, _) = self { Some(again) } else { None }
    }

    /// Whether no player said what the answer is to.
    #[must_use]
    pub fn is_unprompted(&self) -> bool {
        self.greeting().is_some() || self.continues()
    }

    /// Whether the entity goes on from its last answer.
    #[must_use]
    pub fn continues(&self) -> bool {
        matches!(self, Way::Continuation) || self.again().is_some_and(|again| again.continues)
    }
}

/// Another attempt at an answer.
#[derive(Clone, Debug)]
pub struct Again {
    /// The new turn's id.
    pub id: Uuid,
    /// The turn that is set aside for it.
    pub of: Uuid,
    /// The first of the alternatives.
    pub parent: Uuid,
    /// The profile that answers, if it is not the usual one.
    pub model: Option<String>,
    pub hint: Option<String>,
    /// What was rolled before.
    pub earlier: Earlier,
    /// Whether the answer went on from the one before it.
    pub continues: bool,
}

/// A turn in which an entity reacts by itself. What it says waits for the player as a reply.
#[derive(Clone, Debug)]
pub struct Reaction {
    pub id: Uuid,
    /// What the entity reacts to.
    pub cause: Cause,
    /// The location, as a key, where the player must be to hear the reply.
    pub location_key: Option<String>,
    /// Whether the turn is undone if the reply cannot be delivered.
    pub reverts: bool,
    /// How many seconds the reply waits.
    pub expires_seconds: u32,
}
