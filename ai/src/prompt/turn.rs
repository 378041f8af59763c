//! A turn's own message: lore that enters with it, the situation, events of the world, what an owner has to spend, the decision of the rules, and what the
//! player did. `super::remembered` writes what is recalled for it.

use std::{ops::Range, sync::Arc};

use sha2::{Digest, Sha256};

use super::{
    base_prompt::BasePrompt,
    fence,
    hash::short_hash,
    lore::Knower,
    pieces::Pieces,
    segment,
    transcript::Transcript,
    wake::{Entered, Things, wake},
};
use base::{clock, error::Result, threads, tokens};
use world::{campaigns::prompt_section::Section, messages::prompt_text, owners::Influence};

/// The turn's own message: lore that keywords activated, the situation, the action.
pub struct TurnText {
    /// As it stays in the conversation: without what is recalled for the action.
    pub text: Arc<str>,
    /// Where the model reads what is recalled: right before the action.
    recalled_at: usize,
    /// Where the action stands in it.
    pub words: Range<usize>,
    pub tokens: u32,
    pub hash: String,
    pub lore: Vec<super::LoreDecision>,
    pub cut: String,
    /// What may be left out to fit the model's context.
    pieces: Pieces,
}

/// What a turn's message tells.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    pub cause: Cause,
    /// What the player did.
    pub action: &'a str,
    /// The decision of the rules.
    pub mechanics: Option<&'a str>,
    /// What an owner has to spend.
    pub has: Option<Influence>,
}

/// Writes the turn's message: activated lore, the situation, the decision of the rules, the action. Does not repeat lore that the
/// model can still read in the window.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn turn_text_apart(
    base: &Arc<BasePrompt>,
    transcript: &Arc<Transcript>,
    Told { cause, action, mechanics, has }: Told<'_>,
) -> Result<TurnText> {
    // Without keyword lore, only the action has to be read.
    let mut searched = base.lore.iter().chain(&base.kinds);
    let read = if searched.any(|lore| lore.has_keywords()) { transcript.bytes() } else { 0 };
    let (base, transcript) = (base.clone(), transcript.clone());
    let (action, mechanics) = (action.to_owned(), mechanics.map(ToOwned::to_owned));
    let bytes = action.len() + mechanics.as_ref().map_or(0, String::len) + read / LIGHTER;
    threads::apart(bytes, move || {
        let told = Told { cause, action: &action, mechanics: mechanics.as_deref(), has };
        turn_text(&base, &transcript, told)
    })
    .await
}

/// Searching for words, or writing them, is this many times faster than counting tokens.
pub const LIGHTER: usize = 16;

/// What the record of a continuation says in place of what a player did.
pub const GOES_ON: &str = "(continue)";

/// Why an entity has a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A player speaks to it or acts towards it.
    Action,
    /// A player's actions matter enough to it.
    Significance,
    /// A player prays to it.
    Prayer,
    /// A player comes to it for the first time.
    Arrival,
    /// It goes on from its last answer.
    Continuation,
}

impl TurnText {
    /// The parts of the message as the model reads it.
    #[must_use]
    pub fn with(&self, recalled: &Arc<str>) -> Vec<Arc<str>> {
        match self.text.split_at_checked(self.recalled_at) {
            Some((before, action)) if !recalled.is_empty() => vec![before.into(), recalled.clone(), action.into()],
            _ => vec![self.text.clone()],
        }
    }

    /// The message as the model read it, in the form in which it is stored: the action is stored elsewhere.
    #[must_use]
    pub fn read_with(&self, recalled: &str) -> String {
        let mut text = self.without_words();
        if text.is_char_boundary(self.recalled_at) {
            text.insert_str(self.recalled_at, recalled);
        }
        text
    }

    /// The text in the form in which it is stored: the action is stored elsewhere.
    #[must_use]
    pub fn without_words(&self) -> String {
        prompt_text::without_words(&self.text, self.words.clone())
    }

    /// Leaves out as much of the lore as it takes to save `excess` tokens, or all of it.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub async fn lessen(&mut self, excess: u32, context: u32) -> Result<()> {
        if let Some(less) = self.pieces.lessen(&self.text, self.tokens, excess, context).await? {
            self.words = less.moved(&self.words);
            self.recalled_at = less.moved(&(self.recalled_at..self.recalled_at)).start;
            self.lore = less.decided(&self.lore, context);
            self.cut = less.cut_after(&self.cut);
            (self.text, self.tokens, self.hash, self.pieces) = (less.text, less.tokens, less.hash, less.pieces);
        }
        Ok(())
    }
}

impl Cause {
    /// What the model reads, and the name of the element with the player's part.
    fn instruction_and_element(self) -> (&'static str, &'static str) {
        match self {
            Cause::Action => ("", "player_action"),
            Cause::Significance => (
                "Nobody has asked you. You noticed what this player did since you last reacted, the oldest first. React in character if it \
                 matters to you: with words to the player, with tools, or with both. If it does not matter to you, answer with nothing.\n",
                "noticed_actions",
            ),
            Cause::Continuation => ("Go on from where your last answer ended. Do not repeat it.\n", "nobody_speaks"),
            Cause::Arrival => ("This player begins a conversation. Greet them.\n", "player_arrives"),
            Cause::Prayer => ("This player prays to you. Answer in character.\n", "prayer"),
        }
    }
}

fn turn_text(base: &BasePrompt, transcript: &Transcript, Told { cause, action, mechanics, has }: Told<'_>) -> TurnText {
    let mut out = String::new();
    let budget = base.layout.budget(Section::Turn, &base.cast.settings);
    let lores = base.lore.iter().map(AsRef::as_ref);
    let events = segment::events(&base.events, clock::now(), budget);
    let budget = budget.saturating_sub(tokens::count(&events));
    let things = Things { kinds: &base.kinds, here: &base.here };
    let Entered { text, lore, cut, pieces } =
        wake(lores, things, Knower::Entity(base.key.entity), transcript, action, budget);
    out.push_str(&text);
    out.push_str(&base.situation);
    out.push_str(&events);
    if let Some(has) = has {
        out.push_str(&segment::influence(&base.cast, has));
    }
    if let Some(mechanics) = mechanics {
        fence::put(&mut out, "mechanics", &[], mechanics);
    }
    let recalled_at = out.len();
    let attributes = [("player", base.cast.player.slug.as_str()), ("name", base.cast.player.name.as_str())];
    let (instruction, element) = cause.instruction_and_element();
    out.push_str(instruction);
    let words = fence::put(&mut out, element, &attributes, action);
    let (tokens, hash) = (tokens::count(&out), short_hash(&Sha256::digest(out.as_bytes())));
    TurnText { text: out.into(), recalled_at, words, tokens, hash, lore, cut, pieces }
}
