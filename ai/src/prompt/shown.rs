//! A prompt as one model reads it in one turn: the base prompt, the conversation, the turn's own message and the late texts, within the
//! model's context window.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    LoreDecision,
    assemble::Assembled,
    base_prompt::{BasePrompt, summed},
    fit::{self, GivesWay},
    recall_report::RecallReport,
    remembered::{self, Recall},
    reminder::{self, Reminder},
    segment::Segment,
    size,
    transcript::{Transcript, messages},
    turn::{Cause, Told, TurnText, turn_text_apart},
};
use base::{
    error::{Result, TooLarge},
    tokens,
};
use llm::{Message, Window};
use world::campaigns::prompt_section::Section;

/// A prompt, ready to be sent.
pub struct Shown {
    segments: Vec<Arc<Segment>>,
    pub transcript: Arc<Transcript>,
    pub turn: TurnText,
    /// What the entity remembers for this turn's action. It is not kept with the conversation.
    recalled: Arc<Segment>,
    /// Why it holds which memories. None if it has no section for them, or if no model reads it.
    pub recall: Option<RecallReport>,
    pub reminders: Vec<Reminder>,
    /// The hash of the base prompt, and its tokens.
    pub base_hash: Arc<str>,
    pub base_tokens: u32,
    /// The exchanges that are not shown, in words.
    history_cut: String,
    /// Set if the model's context cannot hold the prompt.
    pub too_large: Option<TooLarge>,
}

/// A section of the prompt: its name, text, tokens and hash, and what was cut. The text of the history is in [`Shown::transcript`].
pub struct ShownSection<'a> {
    pub name: &'static str,
    pub text: &'a str,
    pub tokens: u32,
    pub hash: &'a str,
    pub cut: &'a str,
}

impl<'a> ShownSection<'a> {
    fn of(segment: &'a Arc<Segment>) -> Self {
        let Segment { section, text, tokens, hash, cut, .. } = &**segment;
        Self { name: section.name(), text, tokens: *tokens, hash, cut }
    }
}

impl Shown {
    /// Puts the prompt together, whatever its size.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub async fn of(assembled: &Assembled, told: Told<'_>, reminders: Vec<Reminder>) -> Result<Self> {
        let Assembled { base, recall, .. } = assembled;
        let transcript = base.window();
        let turn = turn_text_apart(base, &transcript, told).await?;
        // No model reads a greeting's prompt.
        let recalls = base.layout.base.contains(&Section::Memories) && told.cause != Cause::Arrival;
        let nothing = Recall::nothing();
        let (recalled, report) = remembered::recalled(base, if recalls { recall } else { &nothing }, told).await?;
        let mut shown = Self {
            recalled,
            recall: recalls.then_some(report),
            segments: base.segments.clone(),
            history_cut: history_cut(base, &transcript),
            transcript,
            turn,
            reminders,
            base_hash: base.hash.clone(),
            base_tokens: base.tokens,
            too_large: None,
        };
        shown.count_memories();
        Ok(shown)
    }

    /// Completes the report on memories: what they take, how many there are, and which were left out to fit the model's context.
    fn count_memories(&mut self) {
        let Some(report) = &mut self.recall else { return };
        let sections = self.segments.iter().chain([&self.recalled]);
        let sections = sections.filter(|s| matches!(s.section, Section::Memories | Section::Recalled));
        report.used = sections.clone().map(|section| section.tokens).sum();
        let mut shown: Vec<Uuid> = sections.flat_map(|section| section.pieces.ids()).collect();
        shown.sort_unstable();
        report.left_out = report.rows.saturating_sub(shown.len());
        report.revise(&shown);
    }

    /// Makes it fit the context window of the model that is asked. This can take a while for a large prompt, so no transaction waits for it.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub async fn fit(&mut self, base: &Arc<BasePrompt>, told: Told<'_>, window: Window) -> Result<()> {
        let tools_tokens = match &base.tools {
            Some(tools) => tokens::count_lasting(tools.get().to_owned()).await?,
            None => 0,
        };
        let mut fitting = Fitting { shown: self, base, told, tools_tokens };
        fit::fit(&mut fitting, &base.layout.cut, window).await?;
        let too_large = size::too_large(fitting.tokens(), window);
        self.too_large = too_large;
        (self.base_hash, self.base_tokens) = summed(&self.segments);
        self.history_cut = history_cut(base, &self.transcript);
        self.count_memories();
        Ok(())
    }

    /// The messages for the model: the rules, then everything about the world and the character, then the conversation. Roles
    /// alternate, as strict endpoints require. Nothing is copied.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let is_rule = |segment: &&Arc<Segment>| matches!(segment.section, Section::EngineRules | Section::Instructions);
        let rules = self.segments.iter().take_while(is_rule).count();
        let told = self.segments.iter().skip(rules).filter(|segment| !segment.text.is_empty()).count();
        let texts = self.segments.iter().map(|s| s.text.clone());
        let mut messages = messages(texts, rules, &self.transcript, self.turn.with(&self.recalled.text));
        reminder::insert(&mut messages, &self.reminders, told);
        messages
    }

    /// The turn's own message as the model reads it, in the form in which it is stored.
    #[must_use]
    pub fn read_turn(&self) -> String {
        self.turn.read_with(&self.recalled.text)
    }

    /// The sections as views list them: without optional ones that are empty.
    pub fn sections(&self) -> impl Iterator<Item = ShownSection<'_>> {
        let is_listed = |s: &&Arc<Segment>| !s.section.is_optional() || !s.text.is_empty() || !s.cut.is_empty();
        let base = self.segments.iter().filter(is_listed).map(ShownSection::of);
        let history = ShownSection {
            name: Section::History.name(),
            text: "",
            tokens: self.transcript.tokens,
            hash: &self.transcript.hash,
            cut: &self.history_cut,
        };
        let recalled = Some(&self.recalled).filter(is_listed).map(ShownSection::of);
        let turn = ShownSection {
            name: Section::Turn.name(),
            text: &self.turn.text,
            tokens: self.turn.tokens,
            hash: &self.turn.hash,
            cut: &self.turn.cut,
        };
        let late = self.reminders.iter().map(|reminder| ShownSection {
            name: reminder.name,
            text: &reminder.text,
            tokens: reminder.tokens,
            hash: &reminder.hash,
            cut: "",
        });
        base.chain([history]).chain(recalled).chain([turn]).chain(late)
    }

    /// The decisions about lore, and why.
    pub fn lore(&self) -> impl Iterator<Item = &LoreDecision> {
        self.segments.iter().flat_map(|segment| segment.lore.iter()).chain(&self.turn.lore)
    }
}

/// The exchanges of a conversation that are not shown, in words.
#[must_use]
pub fn left_out(exchanges: usize) -> String {
    match exchanges {
        0 => String::new(),
        1 => "1 older exchange".to_owned(),
        n => format!("{n} older exchanges"),
    }
}

fn history_cut(base: &BasePrompt, shown: &Transcript) -> String {
    left_out(base.transcript.exchanges.len() - shown.exchanges.len())
}

/// A prompt while it is made to fit.
struct Fitting<'a> {
    shown: &'a mut Shown,
    base: &'a Arc<BasePrompt>,
    told: Told<'a>,
    /// What is sent beside the messages.
    tools_tokens: u32,
}

impl GivesWay for Fitting<'_> {
    fn tokens(&self) -> u32 {
        let Shown { segments, transcript, turn, recalled, reminders, .. } = &*self.shown;
        let texts = segments.iter().chain([recalled]).map(|s| s.tokens).chain(reminders.iter().map(|r| r.tokens));
        let rest =
            [transcript.tokens, turn.tokens, self.tools_tokens, size::around(2 * transcript.exchanges.len() + 2)];
        texts.chain(rest).fold(0, u32::saturating_add)
    }

    fn transcript(&self) -> &Arc<Transcript> {
        &self.shown.transcript
    }

    async fn show(&mut self, transcript: Arc<Transcript>) -> Result<()> {
        self.shown.transcript = transcript;
        self.shown.turn = turn_text_apart(self.base, &self.shown.transcript, self.told).await?;
        Ok(())
    }

    async fn lessen_new_lore(&mut self, excess: u32, context: u32) -> Result<()> {
        self.shown.turn.lessen(excess, context).await
    }

    async fn lessen(&mut self, section: Section, excess: u32, context: u32) -> Result<()> {
        let Shown { segments, recalled, .. } = &mut *self.shown;
        if let Some(segment) = segments.iter_mut().chain([recalled]).find(|segment| segment.section == section)
            && let Some(less) = segment.lessen(excess, context).await?
        {
            *segment = Arc::new(less);
        }
        Ok(())
    }
}
