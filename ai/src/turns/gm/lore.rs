//! The lore for a session's AI. Global lore is in the base of its prompt, which stays the same. Other lore comes with the
//! turn: lore of the session's location, lore that keywords activate, and lore of creatures and items that are mentioned or
//! are in the world state. A game master and an assistant know the whole world and its secrets. A player's AI knows what
//! its character may know.

use std::sync::Arc;

use entity::{session::Role, shapes::Extensions};
use uuid::Uuid;

use crate::prompt::{
    cache::Prompts,
    fresh_lore::lore_now,
    here::Here,
    lore::{Knower, ScopeLore},
    scope::{LoreScope, of_player},
    segment::{SectionDraft, lore_section},
    transcript::Transcript,
    turn::LIGHTER,
    wake::{self, Entered, Things},
};
use base::{error::Result, threads};
use db::tenancy::TenantTx;
use world::{
    campaigns::prompt_section::Section,
    messages::visible::{Which, visible_messages},
    playing::Playing,
    sessions::facts::{Facts, Whereabouts},
};

/// The most messages at the table that are searched for keywords.
const SAID_MAX: i64 = 20;

/// The lore for a session's AI.
pub(super) struct Lore {
    knower: Knower,
    at: Whereabouts,
    /// The heads of this lore, and their versions when it was read.
    pub heads: Vec<String>,
    versions: Vec<i64>,
    global: Arc<ScopeLore>,
    /// Lore of the location and, for a player's AI, of its character's race and profession.
    scoped: Vec<Arc<ScopeLore>>,
    /// The keyword entries of all scopes, for an AI that knows the whole world.
    any: Option<Arc<ScopeLore>>,
    /// Lore of creatures and of items.
    kinds: Vec<Arc<ScopeLore>>,
}

impl Lore {
    /// Reads the lore. One statement for cached lore.
    ///
    /// # Errors
    /// Database errors.
    pub(super) async fn read(prompts: &Prompts, tx: &TenantTx, session: &Playing, at: &Whereabouts) -> Result<Self> {
        let mut scopes = vec![LoreScope::global()];
        scopes.extend(LoreScope::zone(at.place.as_deref()));
        let knower = if session.role == Role::Player {
            scopes.extend(of_player(
                at.race.as_deref().unwrap_or_default(),
                at.profession.as_deref().unwrap_or_default(),
                &[],
            ));
            Knower::Entity(session.player.unwrap_or(Uuid::nil()))
        } else {
            scopes.push(LoreScope::any());
            Knower::GameMaster
        };
        let of_things = scopes.len();
        scopes.extend(LoreScope::kinds());
        let heads = scopes.iter().map(LoreScope::head).collect();
        let (mut all, versions) = lore_now(prompts, tx, session.campaign, &scopes).await?;
        let kinds = all.split_off(of_things);
        let any = if knower == Knower::GameMaster { all.pop() } else { None };
        let scoped = all.split_off(1);
        let global = all.pop().ok_or_else(|| base::error::Error::internal("global lore is always asked for"))?;
        Ok(Self { knower, at: at.clone(), heads, versions, global, scoped, any, kinds })
    }

    /// Whether this is still the right lore.
    pub(super) fn is_of(&self, facts: &Facts) -> bool {
        let knows = match self.knower {
            Knower::GameMaster => facts.playing.role != Role::Player,
            Knower::Entity(id) => {
                facts.playing.role == Role::Player && id == facts.playing.player.unwrap_or(Uuid::nil())
            }
        };
        knows && self.at == facts.at && self.versions == facts.heads
    }

    /// Whether there are keyword entries.
    pub(super) fn has_keywords(&self) -> bool {
        self.awake().chain(&self.kinds).any(|lore| lore.has_keywords())
    }

    /// The lore with entries that keywords may activate.
    fn awake(&self) -> impl Iterator<Item = &Arc<ScopeLore>> + Clone {
        let own = std::iter::once(&self.global).chain(&self.scoped).filter(|_| self.any.is_none());
        own.chain(&self.any)
    }

    /// Global lore, a part of the base.
    pub(super) fn global(&self, settings: &Extensions) -> SectionDraft {
        let budget = Section::GlobalLore.budget_in(settings);
        lore_section("world_lore", std::slice::from_ref(&self.global), self.knower, budget)
    }

    /// Lore of the location, except what can still be read in the conversation.
    pub(super) fn of_place(&self, settings: &Extensions, transcript: &Transcript) -> Entered {
        let budget = Section::ScopedLore.budget_in(settings);
        wake::always(self.scoped.iter().map(AsRef::as_ref), self.knower, transcript, budget)
    }

    /// Lore activated by the texts of this turn, of the table and of the conversation.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub(super) async fn woken(
        &self,
        settings: &Extensions,
        transcript: &Arc<Transcript>,
        words: &[&str],
    ) -> Result<Entered> {
        let (budget, knower) = (Section::Turn.budget_in(settings), self.knower);
        let awake: Vec<Arc<ScopeLore>> = self.awake().cloned().collect();
        let kinds = self.kinds.clone();
        let (transcript, words) = (transcript.clone(), words.join("\n"));
        let bytes = (transcript.bytes() + words.len()) / LIGHTER;
        threads::apart(bytes, move || {
            // The world state, which is one of the texts, names the creatures and items that are here.
            let things = Things { kinds: &kinds, here: &Here::default() };
            wake::wake(awake.iter().map(AsRef::as_ref), things, knower, &transcript, &words, budget)
        })
        .await
    }
}

/// The recent messages at the table, without those of AIs. One statement.
///
/// # Errors
/// Database errors.
pub(super) async fn table_talk(tx: &TenantTx, session: &Playing) -> Result<String> {
    let table = visible_messages(tx, session.campaign, Some(session.reader()), Which::Newest(SAID_MAX)).await?;
    let words: Vec<&str> = table.iter().filter(|m| m.author != "ai").map(|m| m.content.as_str()).collect();
    Ok(words.join("\n"))
}
