//! A request for a turn of a session's AI.

use entity::session::Role;
use uuid::Uuid;

use super::session_prompts;
use crate::turns::{
    job::{OnBusy, OnFailure},
    kind::TurnKind,
    store::{NewTurn, Place},
    subject::Subject,
    talk::Talk,
};
use edge::http::idempotency::IdempotencyKey;
use llm::ReplyMode;

/// A requested turn.
#[derive(Clone, Debug)]
pub struct GmJob {
    pub campaign: String,
    pub session: Uuid,
    pub instruction: Option<String>,
    /// Another role than the session's, only for this turn.
    pub role: Option<Role>,
    pub steps_max: Option<u32>,
    pub mechanics: Option<Uuid>,
    /// Dice rolled by hand, for the AI's rolls in order.
    pub dice: Option<Vec<u32>>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<IdempotencyKey>,
}

impl GmJob {
    /// What the turn is about.
    pub(super) fn subject(&self, campaign: Uuid) -> Subject {
        Subject { kind: TurnKind::Gm, campaign, entity: self.session, player: None }
    }

    pub(super) fn cache_key(&self) -> session_prompts::Key {
        (self.session, self.role, self.mode)
    }

    pub(super) fn row<'r>(&'r self, talk: &Talk<'r>, place: Place) -> NewTurn<'r> {
        let instruction = self.instruction.as_deref().unwrap_or_default();
        NewTurn { on_failure: self.on_failure, place, ..talk.row(instruction, self.key.as_ref()) }
    }
}
