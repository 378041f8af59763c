//! Keeps the parts of a session's prompt from turn to turn. Each part has the version from which it was written, and is used only
//! if the database still has that version. A part may be missing, but never wrong.

use std::sync::Arc;

use entity::session::Role;
use uuid::Uuid;

use super::{lasting::Base, lore::Lore};
use crate::{
    fair_cache::{FairCache, Weigh},
    prompt::transcript::Transcript,
};
use edge::tenants::tasks::{Task, slug_in};
use llm::ReplyMode;
use world::sessions::facts::{CachedFacts, CampaignNow, Facts};

/// A session, and the role and the reply mode that a turn asks for.
pub type Key = (Uuid, Option<Role>, Option<ReplyMode>);

/// The cached prompts of sessions.
pub type SessionPrompts = FairCache<Key, CachedPrompt>;

/// The cached parts of a session's prompt.
pub struct CachedPrompt {
    /// The reply mode for which the base is written.
    pub(super) mode: ReplyMode,
    pub(super) campaign: Arc<CampaignNow>,
    pub(super) lore: Arc<Lore>,
    pub(super) base: Arc<Base>,
    pub(super) transcript: Arc<Transcript>,
    /// The role and player of the conversation.
    pub(super) conversation_key: String,
    pub(super) talk: Option<Talk>,
}

/// The recent messages at the table, as read by a turn whose cursor was `upto`.
#[derive(Clone)]
pub(super) struct Talk {
    pub upto: i64,
    pub role: Role,
    pub words: Arc<str>,
}

impl Talk {
    /// Whether there are no newer messages.
    fn is_of(&self, facts: &Facts) -> bool {
        let told = facts.standing.cursor.is_some_and(|cursor| cursor.seq == self.upto);
        told && !facts.has_news && self.role == facts.playing.role
    }
}

impl CachedPrompt {
    /// The recent messages at the table, if they are up to date.
    pub(super) fn talk(&self, facts: &Facts) -> Option<Talk> {
        let talk = self.talk.as_ref().filter(|talk| talk.is_of(facts))?;
        Some(Talk { upto: facts.standing.now.seq, ..talk.clone() })
    }

    /// The model profile that the campaign, as it is now, names for the AIs of sessions.
    pub(super) fn named_model<'a>(kept: Option<&'a Self>, facts: &'a Facts) -> Option<&'a str> {
        let settings = facts.campaign.as_ref().map(|campaign| &campaign.settings);
        let settings = settings.or_else(|| kept.map(|kept| &kept.campaign.settings));
        slug_in(settings.and_then(|settings| settings.get("models")), Task::Gm)
    }

    /// What does not have to be read again if its version is the same.
    pub(super) fn cached_facts(&self) -> CachedFacts<'_> {
        CachedFacts { campaign: Some(self.campaign.version), heads: &self.lore.heads }
    }
}

impl Weigh for CachedPrompt {
    /// Does not count lore, because its own cache does.
    fn bytes(&self) -> usize {
        let talk = self.talk.as_ref().map_or(0, |talk| talk.words.len());
        talk + self.base.bytes() + self.transcript.bytes() + self.campaign.description.len() + 2000
    }
}
