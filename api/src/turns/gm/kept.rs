//! What is kept of a session's prompt from turn to turn. Each piece carries the version it was written from, and is used only if that
//! is the database's now: a cache may be cold, never wrong.

use std::sync::Arc;

use entity::session::Role;
use uuid::Uuid;

use super::{lore::Lore, prompt::Base};
use crate::{
    llm::ReplyMode,
    prompt::{
        cache::{FairCache, Weigh},
        transcript::Transcript,
    },
    sessions::facts::{CampaignNow, Held},
};

/// A session, the role that a turn asks for, and how its model replies.
pub type Key = (Uuid, Option<Role>, ReplyMode);

/// The kept prompts of sessions.
pub type Cache = FairCache<Key, Kept>;

/// The pieces of one.
pub struct Kept {
    pub(super) campaign: Arc<CampaignNow>,
    pub(super) lore: Arc<Lore>,
    pub(super) base: Arc<Base>,
    pub(super) transcript: Arc<Transcript>,
}

impl Kept {
    /// What need not be read again if it has not moved.
    pub(super) fn held(&self) -> Held<'_> {
        Held { campaign: Some(self.campaign.version), heads: &self.lore.heads }
    }
}

impl Weigh for Kept {
    /// Lore is counted where it is cached.
    fn bytes(&self) -> usize {
        self.base.bytes() + self.transcript.bytes() + self.campaign.description.len() + 2000
    }
}
