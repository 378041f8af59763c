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
    sessions::facts::{CampaignNow, Facts, Held},
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
    /// Whose conversation it is.
    pub(super) told_as: String,
    pub(super) talk: Option<Talk>,
}

/// What was said at the table, as a turn that was told of everything up to `upto` read it.
#[derive(Clone)]
pub(super) struct Talk {
    pub upto: i64,
    pub role: Role,
    pub words: Arc<str>,
}

impl Talk {
    /// Whether nothing was said since.
    fn is_of(&self, facts: &Facts) -> bool {
        let told = facts.standing.cursor.is_some_and(|cursor| cursor.seq == self.upto);
        told && !facts.has_news && self.role == facts.playing.role
    }
}

impl Kept {
    /// What was said at the table, if it still is.
    pub(super) fn talk(&self, facts: &Facts) -> Option<Talk> {
        let talk = self.talk.as_ref().filter(|talk| talk.is_of(facts))?;
        Some(Talk { upto: facts.standing.now.seq, ..talk.clone() })
    }

    /// What need not be read again if it has not moved.
    pub(super) fn held(&self) -> Held<'_> {
        Held { campaign: Some(self.campaign.version), heads: &self.lore.heads }
    }
}

impl Weigh for Kept {
    /// Lore is counted where it is cached.
    fn bytes(&self) -> usize {
        let talk = self.talk.as_ref().map_or(0, |talk| talk.words.len());
        talk + self.base.bytes() + self.transcript.bytes() + self.campaign.description.len() + 2000
    }
}
