//! The prompt for a session's AI: rules, campaign and lore, the conversation so far, and then either the world as it is or what
//! changed.

use std::{fmt::Write as _, ops::Range, sync::Arc};

use entity::{session::Role, shapes::Extensions};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    lasting::{Base, Part},
    lore::{Lore, table_talk},
    role,
    session_prompts::{CachedPrompt, Talk},
};
use crate::prompt::{
    LoreDecision,
    cache::Prompts,
    fence,
    hash::short_hash,
    preview::{MessageText, Preview, SectionText},
    transcript::{Exchange, Transcript, messages},
    wake::Entered,
};
use base::{
    error::{Error, Result},
    threads,
};
use db::{pool::Pool, tenancy::TenantTx};
use llm::{Message, ReplyMode};
use world::{
    campaigns::prompt_section::Section,
    messages::prompt_text,
    playing::Playing,
    sessions::{
        changes,
        combat::{self, Fight},
        delta::{Delta, NO_CHANGES},
        facts::{CampaignNow, Facts},
        overview, service,
    },
};

/// The beginning of an overview. The transcript is searched for it.
const OVERVIEW: &str = "World State Overview:\n";
const CHANGES: &str = "Recent changes to the game:\n";

/// The transaction for reading.
pub(super) enum Reads<'a> {
    Within(&'a TenantTx),
    /// A transaction that begins when something has to be read.
    Later {
        pool: &'a Pool,
        tenant: Uuid,
        tx: Option<Box<TenantTx>>,
    },
}

impl<'a> Reads<'a> {
    pub(super) fn later(pool: &'a Pool, tenant: Uuid) -> Self {
        Self::Later { pool, tenant, tx: None }
    }

    fn tenant(&self) -> Uuid {
        match self {
            Self::Within(tx) => tx.tenant(),
            Self::Later { tenant, .. } => *tenant,
        }
    }

    async fn tx(&mut self) -> Result<&TenantTx> {
        match self {
            Self::Within(tx) => Ok(tx),
            Self::Later { tx: Some(tx), .. } => Ok(tx),
            Self::Later { pool, tenant, tx } => Ok(tx.insert(Box::new(TenantTx::read(pool, *tenant).await?))),
        }
    }
}

/// The fights in progress, as the session may see them. Two statements.
async fn fights(tx: &TenantTx, playing: &Playing) -> Result<Vec<Fight>> {
    combat::going_on(tx, playing.campaign, Some(playing.id), playing.reader()).await
}

/// What the request for a turn contains.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub mode: ReplyMode,
    pub instruction: Option<&'a str>,
    /// The decision of the rules.
    pub mechanics: Option<&'a str>,
}

/// A prompt, and the position up to which it tells what happened.
pub(super) struct GmPrompt {
    pub base: Arc<Base>,
    pub transcript: Arc<Transcript>,
    /// History (without its text, which is the transcript's), context, lore of the location, the turn itself.
    rest: [Part; 4],
    /// Whether the whole base came from the cache.
    pub hit: bool,
    /// The reply mode for which the base is written.
    mode: ReplyMode,
    /// `overview` or `delta`.
    pub context: &'static str,
    /// The turn's own message.
    pub text: Arc<str>,
    /// Where the instruction stands in it, if there is one.
    words: Option<Range<usize>>,
    pub text_tokens: u32,
    pub tools: Option<&'static RawValue>,
    pub cache_key: String,
    /// Decisions about lore that may enter with the turn.
    lore: Vec<LoreDecision>,
    pub(super) campaign: Arc<CampaignNow>,
    knows: Arc<Lore>,
    talk: Option<Talk>,
    conversation_key: String,
}

/// Groups the requests of a session, for the provider's cache.
fn cache_key(of: [Uuid; 3]) -> String {
    short_hash(&Sha256::digest(of.map(Uuid::into_bytes).concat()))
}

impl GmPrompt {
    /// Writes everything from cached data and from what changed since. No statement if nothing did; about ten without cached data,
    /// whatever the size of the world.
    ///
    /// # Errors
    /// Database errors.
    pub(super) async fn build(
        prompts: &Prompts,
        reads: &mut Reads<'_>,
        facts: &mut Facts,
        kept: Option<&CachedPrompt>,
        asked: Asked<'_>,
    ) -> Result<Self> {
        let tenant = reads.tenant();
        let (role, session) = (facts.playing.role, facts.playing.id);
        let held = kept.map(|kept| kept.campaign.clone());
        let campaign = facts.campaign.take().map(Arc::new).or(held);
        let campaign = campaign.ok_or_else(|| Error::internal("a campaign that is not held"))?;
        let settings = &campaign.settings;
        let lore = match kept.filter(|kept| kept.lore.is_of(facts)) {
            Some(kept) => kept.lore.clone(),
            None => Arc::new(Lore::read(prompts, reads.tx().await?, &facts.playing, &facts.at).await?),
        };
        let conversation_key = facts.playing.conversation_key();
        let whole = match kept
            .filter(|kept| kept.transcript.version == facts.talk && kept.conversation_key == conversation_key)
        {
            Some(kept) => kept.transcript.clone(),
            None => Arc::new(Transcript::of_session(reads.tx().await?, session, &conversation_key, facts.talk).await?),
        };
        // An overview is part of the conversation, so the budget needs room for both.
        let room = Section::History.budget_in(settings).saturating_add(Section::Overview.budget_in(settings));
        let transcript = whole.within(room);
        let fights = match facts.has_fights {
            true => fights(reads.tx().await?, &facts.playing).await?,
            false => Vec::new(),
        };
        // Tools for fights are shown during one of the server's own fights, or always if the campaign says so.
        let fighting = fights.iter().any(|f| f.own) || settings.get("gm_encounters").is_some_and(|s| *s == true);
        let same = kept.filter(|kept| kept.base.is_of(role, fighting, &campaign, &lore));
        let base = match same {
            Some(kept) => kept.base.clone(),
            None => Arc::new(Base::write(role, asked.mode, fighting, &campaign, &lore).await?),
        };
        let (context, told) = context(reads, facts, &transcript, settings, fights).await?;
        let place = lore.of_place(settings, &transcript);
        let talk = match kept.and_then(|kept| kept.talk(facts)) {
            _ if !lore.has_keywords() => None,
            Some(same) => Some(same),
            None => {
                let words = table_talk(reads.tx().await?, &facts.playing).await?.into();
                Some(Talk { upto: facts.standing.now.seq, role, words })
            }
        };
        let woken = match &talk {
            Some(talk) => {
                let own = [asked.instruction.unwrap_or_default(), asked.mechanics.unwrap_or_default(), &told.text];
                lore.woken(settings, &transcript, &[&own[..], &[&talk.words]].concat()).await?
            }
            None => Entered::default(),
        };
        let scoped = Part::lasting("scoped_lore", place.text, place.cut).await?;
        let (turn_text, words) = turn_text(woken.text, role, asked, told.text.len() + scoped.text.len());
        let turn = Part::new("turn", turn_text, woken.cut).await?;
        Ok(Self {
            text: format!("{}{}{}", told.text, scoped.text, turn.text).into(),
            words,
            // Counted separately, which gives at most one token more for each part.
            text_tokens: told.tokens.saturating_add(scoped.tokens).saturating_add(turn.tokens),
            rest: [history(&whole, &transcript), told, scoped, turn],
            hit: same.is_some(),
            mode: asked.mode,
            base,
            transcript,
            context,
            tools: if asked.mode == ReplyMode::Native { role::definitions(role, fighting) } else { None },
            cache_key: cache_key([tenant, facts.playing.campaign, session]),
            lore: place.lore.into_iter().chain(woken.lore).collect(),
            campaign,
            knows: lore,
            talk,
            conversation_key,
        })
    }

    /// All sections in order. That of the history has no text.
    pub(super) fn sections(&self) -> impl Iterator<Item = &Part> {
        let listed = self.base.parts.iter().filter(|part| part.name != "instructions" || !part.text.is_empty());
        listed.chain(&self.rest)
    }

    /// The decisions about lore, and why.
    pub(super) fn lore(&self) -> impl Iterator<Item = &LoreDecision> {
        self.base.lore.iter().chain(&self.lore)
    }

    /// The data for the next turn's prompt, once this exchange is part of the conversation.
    pub(super) fn to_cached_prompt(&self, exchange: Exchange) -> CachedPrompt {
        CachedPrompt {
            mode: self.mode,
            campaign: self.campaign.clone(),
            lore: self.knows.clone(),
            base: self.base.clone(),
            talk: self.talk.clone(),
            conversation_key: self.conversation_key.clone(),
            transcript: Arc::new(self.transcript.with(exchange, self.transcript.version + 1)),
        }
    }

    /// The turn's own message in the form in which it is stored: the instruction is stored elsewhere.
    pub(super) fn stored_text(&self) -> String {
        let words = self.words.clone();
        words.map_or_else(|| self.text.to_string(), |words| prompt_text::without_words(&self.text, words))
    }

    /// The messages for the model.
    pub(super) fn messages(&self) -> Vec<Message> {
        let texts = self.base.parts.iter().map(|part| part.text.clone());
        messages(texts, self.base.rules, &self.transcript, self.text.clone())
    }

    /// The prompt as a preview.
    pub(super) fn preview(self) -> Preview {
        let messages = self.messages();
        let talk = |e: &Arc<Exchange>| format!("{}{}\n", e.user, e.assistant);
        let text = |part: &Part| match part.name {
            HISTORY => self.transcript.exchanges.iter().map(talk).collect(),
            _ => part.text.to_string(),
        };
        let section = |part: &Part| SectionText {
            name: part.name,
            text: text(part),
            tokens: part.tokens,
            hash: part.hash.clone(),
            cut: part.cut.clone(),
        };
        Preview {
            total_tokens: self.sections().map(|part| part.tokens).sum(),
            messages: messages.iter().map(|m| MessageText { role: m.role, content: m.content.concat() }).collect(),
            sections: self.sections().map(section).collect(),
            lore: self.lore().cloned().collect(),
            cache: if self.hit { "hit" } else { "miss" },
            context: Some(self.context),
            base_hash: self.base.hash.clone(),
            base_tokens: self.base.tokens,
        }
    }
}

const HISTORY: &str = "history";

/// The conversation, perhaps without its oldest exchanges.
fn history(whole: &Transcript, shown: &Transcript) -> Part {
    let older = whole.exchanges.len() - shown.exchanges.len();
    let cut = match older {
        0 => String::new(),
        1 => "1 older exchange".to_owned(),
        n => format!("{n} older exchanges"),
    };
    Part { name: HISTORY, text: "".into(), tokens: shown.tokens, hash: shown.hash.clone(), cut }
}

/// The world as it is or, if the model can still read an earlier overview in the conversation, what changed since.
async fn context(
    reads: &mut Reads<'_>,
    facts: &Facts,
    transcript: &Transcript,
    settings: &Extensions,
    fights: Vec<Fight>,
) -> Result<(&'static str, Part)> {
    let (session, standing) = (&facts.playing, &facts.standing);
    let was_told = transcript.exchanges.iter().any(|e| e.user.starts_with(OVERVIEW));
    if standing.cursor.is_some() && was_told && !standing.is_too_old() {
        let quiet = !facts.has_news && standing.since().event == standing.now.event;
        let delta = if quiet { Delta::default() } else { changes::delta(reads.tx().await?, facts).await? };
        let mut text = String::new();
        if delta.is_empty() {
            let _ = writeln!(text, "{NO_CHANGES}");
        } else {
            text.push_str(CHANGES);
            let shown = serde_json::to_string_pretty(&delta.to_view()?).map_err(Error::internal)?;
            fence::put(&mut text, "recent_changes", &[], &shown);
        }
        return Ok(("delta", Part::new("recent_changes", text, String::new()).await?));
    }
    let tx = reads.tx().await?;
    let known = service::reported_world(tx, session.id, false).await?;
    let overview = overview::overview(tx, session, known, fights).await?;
    let budget = Section::Overview.budget_in(settings);
    // The overview is cut to its budget, however large the world is.
    let (shown, cut) = threads::apart(usize::MAX, move || overview.within(budget)).await??;
    let mut text = OVERVIEW.to_owned();
    fence::put(&mut text, "world_state", &[], &shown);
    Ok(("overview", Part::new("world_state_overview", text, cut).await?))
}

/// Adds to a text what the AI is asked for. Also returns where the instruction stands, with `before` bytes in front of the text.
fn turn_text(
    mut text: String,
    role: Role,
    Asked { instruction, mechanics, .. }: Asked<'_>,
    before: usize,
) -> (String, Option<Range<usize>>) {
    if let Some(mechanics) = mechanics {
        fence::put(&mut text, "mechanics", &[], mechanics);
    }
    let _ = writeln!(text, "{}", role::take_your_turn(role));
    let words = instruction.map(|instruction| fence::put(&mut text, "instruction", &[], instruction));
    (text, words.map(|words| before + words.start..before + words.end))
}
