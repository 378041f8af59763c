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
    Cache, Context, LoreDecision,
    cache::Prompts,
    fence,
    fit::{GivesWay, fit},
    hash::short_hash,
    pieces::Pieces,
    preview::{MessageText, Preview, SectionText},
    shown::left_out,
    size,
    transcript::{Exchange, Transcript, messages},
    wake::Entered,
};
use base::{
    error::{Error, Result, TooLarge},
    threads, tokens,
};
use db::{pool::Pool, tenancy::TenantTx};
use llm::{Message, ReplyMode, Window};
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
    /// The base without anything left out, for later turns.
    kept_base: Arc<Base>,
    pub transcript: Arc<Transcript>,
    /// The conversation that later turns begin with. A small context may hide a part of it from this turn's model.
    pub kept_transcript: Arc<Transcript>,
    /// History (without its text, which is the transcript's), context, lore of the location, the turn itself.
    rest: [Part; 4],
    /// Whether the whole base came from the cache.
    pub hit: bool,
    /// The reply mode for which the base is written.
    mode: ReplyMode,
    /// `overview` or `delta`.
    pub context: Context,
    /// The turn's own message.
    pub text: Arc<str>,
    /// Where the instruction stands in it, if there is one.
    words: Option<Range<usize>>,
    pub text_tokens: u32,
    pub tools: Option<&'static RawValue>,
    pub cache_key: String,
    /// Decisions about lore that may enter with the turn.
    lore: Vec<LoreDecision>,
    /// Set if the model's context cannot hold the prompt.
    too_large: Option<TooLarge>,
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
    /// whatever the size of the world. `window` is the context window of the model, if it is known.
    ///
    /// # Errors
    /// Database errors.
    pub(super) async fn build(
        prompts: &Prompts,
        reads: &mut Reads<'_>,
        facts: &mut Facts,
        kept: Option<&CachedPrompt>,
        asked: Asked<'_>,
        window: Option<Window>,
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
        let kept_transcript = whole.within(room);
        let fights = match facts.has_fights {
            true => fights(reads.tx().await?, &facts.playing).await?,
            false => Vec::new(),
        };
        // Tools for fights are shown during one of the server's own fights, or always if the campaign says so.
        let fighting = fights.iter().any(|f| f.own) || settings.get("gm_encounters").is_some_and(|s| *s == true);
        let same = kept.filter(|kept| kept.base.is_of(role, fighting, &campaign, &lore));
        let kept_base = match same {
            Some(kept) => kept.base.clone(),
            None => Arc::new(Base::write(role, asked.mode, fighting, &campaign, &lore).await?),
        };
        let talk = match kept.and_then(|kept| kept.talk(facts)) {
            _ if !lore.has_keywords() => None,
            Some(same) => Some(same),
            None => {
                let words = table_talk(reads.tx().await?, &facts.playing).await?.into();
                Some(Talk { upto: facts.standing.now.seq, role, words })
            }
        };
        let tools = if asked.mode == ReplyMode::Native { role::definitions(role, fighting) } else { None };
        let (now, talked) =
            (Now { facts, settings, lore: &lore, fights, asked }, talk.as_ref().map(|t| t.words.clone()));
        let mut draft = Draft::write(now, reads, kept_base.clone(), kept_transcript.clone(), talked).await?;
        let too_large = match window {
            Some(window) => Box::pin(draft.fit(tools, window)).await?,
            None => None,
        };
        let Draft { base, transcript, context, told, place, place_lore, turn, turn_lore, words, .. } = draft;
        let before = told.text.len() + place.text.len();
        Ok(Self {
            text: format!("{}{}{}", told.text, place.text, turn.text).into(),
            words: words.map(|words| before + words.start..before + words.end),
            // Counted separately, which gives at most one token more for each part.
            text_tokens: told.tokens.saturating_add(place.tokens).saturating_add(turn.tokens),
            rest: [history(&whole, &transcript), told, place, turn],
            hit: same.is_some(),
            mode: asked.mode,
            base,
            kept_base,
            transcript,
            kept_transcript,
            context,
            tools,
            cache_key: cache_key([tenant, facts.playing.campaign, session]),
            lore: place_lore.into_iter().chain(turn_lore).collect(),
            too_large,
            campaign: campaign.clone(),
            knows: lore.clone(),
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
            base: self.kept_base.clone(),
            talk: self.talk.clone(),
            conversation_key: self.conversation_key.clone(),
            transcript: Arc::new(self.kept_transcript.with(exchange, self.kept_transcript.version + 1)),
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
        messages(texts, self.base.rules, &self.transcript, [self.text.clone()])
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
            recall: None,
            cache: Cache::of(self.hit),
            context: Some(self.context),
            base_hash: self.base.hash.clone(),
            base_tokens: self.base.tokens,
            too_large: self.too_large,
        }
    }
}

const HISTORY: &str = "history";

/// The conversation, perhaps without its oldest exchanges.
fn history(whole: &Transcript, shown: &Transcript) -> Part {
    let cut = left_out(whole.exchanges.len() - shown.exchanges.len());
    let hash = shown.hash.clone();
    Part { name: HISTORY, text: "".into(), tokens: shown.tokens, hash, cut, pieces: Pieces::default() }
}

/// What a prompt is written from.
struct Now<'a> {
    facts: &'a Facts,
    settings: &'a Extensions,
    lore: &'a Lore,
    fights: Vec<Fight>,
    asked: Asked<'a>,
}

/// A prompt while it is written.
struct Draft<'a, 'r> {
    now: Now<'a>,
    reads: &'a mut Reads<'r>,
    /// The recent messages at the table, if they may activate lore.
    talked: Option<Arc<str>>,
    base: Arc<Base>,
    transcript: Arc<Transcript>,
    /// The tokens of the tools' definitions.
    tools_tokens: u32,
    context: Context,
    told: Part,
    place: Part,
    place_lore: Vec<LoreDecision>,
    turn: Part,
    turn_lore: Vec<LoreDecision>,
    /// Where the instruction stands in the turn.
    words: Option<Range<usize>>,
}

impl<'a, 'r> Draft<'a, 'r> {
    async fn write(
        now: Now<'a>,
        reads: &'a mut Reads<'r>,
        base: Arc<Base>,
        transcript: Arc<Transcript>,
        talked: Option<Arc<str>>,
    ) -> Result<Self> {
        let (context, told) = context(reads, &now, &transcript).await?;
        let (place, turn) = (Part::empty("scoped_lore"), Part::empty("turn"));
        let (place_lore, turn_lore) = (Vec::new(), Vec::new());
        let mut draft = Self {
            now,
            reads,
            talked,
            base,
            transcript,
            tools_tokens: 0,
            context,
            told,
            place,
            place_lore,
            turn,
            turn_lore,
            words: None,
        };
        draft.write_turn().await?;
        Ok(draft)
    }

    /// Writes what depends on what can still be read in the conversation.
    async fn write_turn(&mut self) -> Result<()> {
        let Now { settings, lore, asked, facts, .. } = &self.now;
        let place = lore.of_place(settings, &self.transcript);
        let woken = match &self.talked {
            Some(words) => {
                let own = [
                    asked.instruction.unwrap_or_default(),
                    asked.mechanics.unwrap_or_default(),
                    &self.told.text,
                    words,
                ];
                lore.woken(settings, &self.transcript, &own).await?
            }
            None => Entered::default(),
        };
        self.place = Part::lasting("scoped_lore", place.text, place.cut).await?.of(place.pieces);
        let (text, words) = turn_text(woken.text, facts.playing.role, *asked);
        self.turn = Part::new("turn", text, woken.cut).await?.of(woken.pieces);
        (self.place_lore, self.turn_lore, self.words) = (place.lore, woken.lore, words);
        Ok(())
    }

    /// Makes the prompt fit the model's context. Says by how much it does not.
    async fn fit(&mut self, tools: Option<&RawValue>, window: Window) -> Result<Option<TooLarge>> {
        if let Some(tools) = tools {
            self.tools_tokens = tokens::count_lasting(tools.get().to_owned()).await?;
        }
        fit(self, &[], window).await?;
        Ok(size::too_large(self.tokens(), window))
    }
}

impl GivesWay for Draft<'_, '_> {
    fn tokens(&self) -> u32 {
        let parts = [&self.told, &self.place, &self.turn].map(|part| part.tokens);
        let around = size::around(2 * self.transcript.exchanges.len() + 2);
        let rest = [self.base.tokens, self.transcript.tokens, self.tools_tokens, around];
        parts.into_iter().chain(rest).fold(0, u32::saturating_add)
    }

    fn transcript(&self) -> &Arc<Transcript> {
        &self.transcript
    }

    fn news_tokens(&self) -> u32 {
        self.told.tokens
    }

    async fn show(&mut self, transcript: Arc<Transcript>) -> Result<()> {
        self.transcript = transcript;
        // Without the exchange that told the overview, changes mean nothing.
        if (self.context == Context::Delta) != was_told(&self.transcript) {
            (self.context, self.told) = context(self.reads, &self.now, &self.transcript).await?;
        }
        self.write_turn().await
    }

    async fn lessen_new_lore(&mut self, excess: u32, context: u32) -> Result<()> {
        if let Some(less) = self.turn.lessen(excess, context).await? {
            self.turn_lore = less.decided(&self.turn_lore, context);
            self.words = self.words.as_ref().map(|words| less.moved(words));
        }
        Ok(())
    }

    async fn lessen(&mut self, section: Section, excess: u32, context: u32) -> Result<()> {
        if section == Section::ScopedLore {
            if let Some(less) = self.place.lessen(excess, context).await? {
                self.place_lore = less.decided(&self.place_lore, context);
            }
        } else if let Some(base) = self.base.lessen(section, excess, context).await? {
            self.base = Arc::new(base);
        }
        Ok(())
    }
}

/// Whether the model can still read an overview.
fn was_told(transcript: &Transcript) -> bool {
    transcript.exchanges.iter().any(|e| e.user.starts_with(OVERVIEW))
}

/// The world as it is or, if the model can still read an earlier overview in the conversation, what changed since.
async fn context(
    reads: &mut Reads<'_>,
    Now { facts, settings, fights, .. }: &Now<'_>,
    transcript: &Transcript,
) -> Result<(Context, Part)> {
    let (session, standing) = (&facts.playing, &facts.standing);
    if standing.cursor.is_some() && was_told(transcript) && !standing.is_too_old() {
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
        return Ok((Context::Delta, Part::new("recent_changes", text, String::new()).await?));
    }
    let tx = reads.tx().await?;
    let known = service::reported_world(tx, session.id, false).await?;
    let overview = overview::overview(tx, session, known, fights.clone()).await?;
    let budget = Section::Overview.budget_in(settings);
    // The overview is cut to its budget, however large the world is.
    let (shown, cut) = threads::apart(usize::MAX, move || overview.within(budget)).await??;
    let mut text = OVERVIEW.to_owned();
    fence::put(&mut text, "world_state", &[], &shown);
    Ok((Context::Overview, Part::new("world_state_overview", text, cut).await?))
}

/// Adds to a text what the AI is asked for. Also returns where the instruction stands.
fn turn_text(
    mut text: String,
    role: Role,
    Asked { instruction, mechanics, .. }: Asked<'_>,
) -> (String, Option<Range<usize>>) {
    if let Some(mechanics) = mechanics {
        fence::put(&mut text, "mechanics", &[], mechanics);
    }
    let _ = writeln!(text, "{}", role::take_your_turn(role));
    let words = instruction.map(|instruction| fence::put(&mut text, "instruction", &[], instruction));
    (text, words)
}
