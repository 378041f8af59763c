//! Cleans what a model says: names in front of lines, lines in the player's name, an unfinished last sentence, and markup that does not
//! belong in a text. Each rule is a switch of the campaign (`settings.clean_answers`).
//!
//! A rule that would leave nothing of a text is not applied to it. What was removed is kept for the turn's trace.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use entity::shapes::Extensions;
use world::campaigns::settings::CleanAnswers;

/// The most removals of a rule that are recorded, and the most characters of each.
const REMOVED_MAX: usize = 12;
const REMOVED_CHARS_MAX: usize = 500;
/// The most bytes between a name and its colon, such as in `Bob (whispering):`.
const ASIDE_BYTES_MAX: usize = 60;
/// The most bytes of a tag, and of a special token.
const TAG_BYTES_MAX: usize = 300;
const TOKEN_BYTES_MAX: usize = 40;

/// Fences of our prompts and of replies in text.
const FENCES: [&str; 32] = [
    "action",
    "authors_note",
    "available_tools",
    "campaign",
    "character",
    "example_dialogue",
    "influence",
    "instruction",
    "instructions",
    "local_lore",
    "lore",
    "mechanics",
    "memories",
    "memory",
    "narrative",
    "noticed_actions",
    "personality",
    "player",
    "player_action",
    "player_lore",
    "prayer",
    "recalled",
    "recent_changes",
    "response",
    "scenario",
    "situation",
    "tool_result",
    "tool_results",
    "tools",
    "wish",
    "world_lore",
    "world_state",
];
/// Fences of a model's reasoning, which goes with them.
const REASONING: [&str; 2] = ["think", "thinking"];
/// The words that some models write after a token that begins a message.
const ROLES: [&str; 5] = ["assistant", "system", "model", "user", "tool"];
/// Models' special tokens that have no bars. Those with bars, such as `<|im_end|>`, are recognized by their form.
const TOKENS: [&str; 10] =
    ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"];

/// Why something was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleaningRule {
    Markup,
    PlayerLines,
    RolePrefixes,
    UnfinishedSentences,
}

impl CleaningRule {
    /// What people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Markup => "markup",
            Self::PlayerLines => "lines in the player's name",
            Self::RolePrefixes => "the speaker's name",
            Self::UnfinishedSentences => "unfinished sentence",
        }
    }
}

/// What was removed from an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    /// The member of `settings.clean_answers` that asks for it.
    pub rule: CleaningRule,
    /// The removed text, at most 500 characters of it.
    #[schema(max_length = 500)]
    pub text: String,
}

/// The rules for one turn.
#[derive(Clone, Debug)]
pub struct Cleaner {
    rules: CleanAnswers,
    speaker: Names,
    player: Names,
}

/// The names of somebody, as a model may write them in front of a line: whole ones, and the words of them. None if there is nobody.
#[derive(Clone, Debug, Default)]
struct Names {
    whole: Vec<String>,
    parts: Vec<String>,
}

impl Names {
    fn of(names: &[&str]) -> Self {
        let mut found = Self::default();
        for name in names.iter().map(|name| name.trim_matches(MARKS)).filter(|name| !name.is_empty()) {
            if !is_among(&found.whole, name) {
                found.whole.push(name.to_owned());
            }
        }
        for part in found.whole.iter().flat_map(|name| name.split_whitespace()) {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric());
            let is_name = part.chars().next().is_some_and(|first| !first.is_lowercase()) && part.chars().count() > 1;
            if is_name && !is_among(&ARTICLES, part) && !is_among(&found.whole, part) && !is_among(&found.parts, part) {
                found.parts.push(part.to_owned());
            }
        }
        found
    }

    /// Leaves out the parts that somebody else is called, too.
    fn apart_from(mut self, other: &Self) -> Self {
        self.parts.retain(|part| !is_among(&other.whole, part) && !is_among(&other.parts, part));
        self
    }

    fn said<'l>(&self, line: &'l str) -> Option<Said<'l>> {
        self.whole.iter().chain(&self.parts).find_map(|name| said_by(line, name))
    }
}

fn is_among(names: &[impl AsRef<str>], name: &str) -> bool {
    names.iter().any(|known| is_same_name(known.as_ref(), name))
}

/// Parts of names that are no names.
const ARTICLES: [&str; 10] = ["the", "der", "die", "das", "le", "la", "les", "el", "los", "il"];

impl Cleaner {
    /// The campaign's rules for an answer of somebody, who may have several names. None if no rule is on, or if they cannot be read.
    #[must_use]
    pub fn of(settings: &Extensions, speaker: &[&str], player: &str) -> Option<Self> {
        let rules = CleanAnswers::of(settings)?;
        let (speaker, mut player) = (Names::of(speaker), Names::of(&[player]));
        // Somebody of the same name would lose everything.
        player.whole.retain(|name| !is_among(&speaker.whole, name));
        Some(Self { rules, speaker: speaker.clone().apart_from(&player), player: player.apart_from(&speaker) })
    }

    /// The text without what the rules remove, and what that was. `was_cut` says that the model had to stop writing.
    #[must_use]
    pub fn clean<'t>(&self, text: &'t str, was_cut: bool) -> (Cow<'t, str>, Vec<Removed>) {
        let CleanAnswers { markup, player_lines, role_prefixes, unfinished_sentences } = self.rules;
        let (mut cleaned, mut removed) = (Cow::Borrowed(text), Vec::new());
        let rules = [
            (markup, CleaningRule::Markup),
            (player_lines, CleaningRule::PlayerLines),
            (role_prefixes, CleaningRule::RolePrefixes),
            (unfinished_sentences, CleaningRule::UnfinishedSentences),
        ];
        for (_, rule) in rules.into_iter().filter(|(is_on, _)| *is_on) {
            let mut gone = Vec::new();
            let rest = self.apply(rule, &cleaned, was_cut, &mut gone);
            if gone.is_empty() || rest.trim().is_empty() {
                continue;
            }
            cleaned = Cow::Owned(rest.trim().to_owned());
            let texts = gone.into_iter().take(REMOVED_MAX).map(|text| text.chars().take(REMOVED_CHARS_MAX).collect());
            removed.extend(texts.map(|text| Removed { rule, text }));
        }
        (cleaned, removed)
    }

    fn apply(&self, rule: CleaningRule, text: &str, was_cut: bool, gone: &mut Vec<String>) -> String {
        match rule {
            CleaningRule::Markup => without_markup(text, gone),
            CleaningRule::PlayerLines => self.without_player(text, gone),
            CleaningRule::RolePrefixes => self.without_prefixes(text, gone),
            CleaningRule::UnfinishedSentences => whole_sentences(text, was_cut, gone),
        }
    }

    /// Leaves out what is said in the player's name: a line that begins with it, up to an empty line or one of the speaker.
    fn without_player(&self, text: &str, gone: &mut Vec<String>) -> String {
        let (mut kept, mut is_players): (Vec<&str>, bool) = (Vec::new(), false);
        for line in text.lines() {
            if self.player.said(line).is_some() {
                is_players = true;
            } else if line.trim().is_empty() && is_players {
                // The empty line before this part separates what is around it.
                is_players = false;
                if kept.last().is_none_or(|before| before.trim().is_empty()) {
                    continue;
                }
            } else if self.speaker.said(line).is_some() {
                is_players = false;
            }
            if is_players { gone.push(line.trim().to_owned()) } else { kept.push(line) }
        }
        kept.join("\n")
    }

    /// Leaves out the speaker's name in front of lines.
    fn without_prefixes(&self, text: &str, gone: &mut Vec<String>) -> String {
        let line = |line| match self.speaker.said(line) {
            Some(Said { words, is_whole: true }) => {
                gone.push(line[..line.len() - words.len()].trim().to_owned());
                words
            }
            _ => line,
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// What stands around a name.
const MARKS: [char; 5] = ['*', '_', '[', ']', ' '];

/// The words after a name and a colon.
struct Said<'l> {
    words: &'l str,
    /// Whether emphasis that begins before the name ends before the words. Else the words cannot stand alone.
    is_whole: bool,
}

/// What follows the name and a colon at the beginning of a line: `Bob: Aye.`, `**Bob:** Aye.`, `[Bob]: Aye.`, `Bob (quietly): Aye.`
fn said_by<'l>(line: &'l str, name: &str) -> Option<Said<'l>> {
    if name.is_empty() {
        return None;
    }
    let line = line.trim_start();
    let inner = line.trim_start_matches(['*', '_']);
    let emphasis = &line[..line.len() - inner.len()];
    let mut rest = match inner.strip_prefix('[') {
        Some(inner) => without_name(inner, name)?.strip_prefix(']')?,
        None => without_name(inner, name)?,
    };
    let mut is_whole = emphasis.is_empty();
    let mut close = |rest: &mut &'l str| {
        if let Some(after) = rest.strip_prefix(emphasis).filter(|_| !is_whole) {
            (*rest, is_whole) = (after, true);
        }
    };
    close(&mut rest);
    rest = rest.trim_start_matches(' ');
    if let Some(aside) = rest.strip_prefix('(') {
        let end = aside.find(')').filter(|end| *end <= ASIDE_BYTES_MAX)?;
        rest = aside[end + 1..].trim_start_matches(' ');
    }
    rest = rest.strip_prefix([':', '：'])?;
    close(&mut rest);
    Some(Said { words: rest.trim_start_matches(' '), is_whole })
}

fn is_same_name(one: &str, other: &str) -> bool {
    without_name(one, other).is_some_and(str::is_empty)
}

/// What follows a name, in either case.
fn without_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    let is_same = |wanted: char| rest.next().is_some_and(|found| found.to_lowercase().eq(wanted.to_lowercase()));
    name.chars().all(is_same).then_some(rest.as_str())
}

/// Leaves out fences, special tokens, and reasoning. Other text between fences stays.
fn without_markup(text: &str, gone: &mut Vec<String>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '[']) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let markup = reasoning_at(from).or_else(|| markup_at(from));
        let (piece, after) = from.split_at(markup.unwrap_or(1));
        if markup.is_some() {
            gone.push(piece.to_owned())
        } else {
            kept.push_str(piece)
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// The bytes of the closed reasoning with which a text begins.
fn reasoning_at(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let name = REASONING.iter().find(|name| inside.strip_prefix(**name).is_some_and(|rest| rest.starts_with('>')))?;
    let end = text.find(&format!("</{name}>"))?;
    Some(end + name.len() + 3)
}

/// The bytes of the markup with which a text begins.
fn markup_at(text: &str) -> Option<usize> {
    if let Some(token) = TOKENS.iter().find(|token| text.starts_with(**token)) {
        return Some(token.len());
    }
    let inside = text.strip_prefix('<')?;
    if let Some(token) = inside.strip_prefix(['|', '｜']) {
        // Not beyond the longest token: the text may have many beginnings and no end.
        let near = &token[..token.floor_char_boundary(TOKEN_BYTES_MAX)];
        let (name, after) = near.split_once(['|', '｜'])?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '▁');
        let after = after.strip_prefix('>').filter(|_| !name.is_empty() && name.chars().all(fits))?;
        let length = text.len() - token.len() + near.len() - after.len();
        let role = ROLES.iter().find(|role| name.contains("start") && text[length..].starts_with(**role));
        return Some(length + role.map_or(0, |role| role.len()));
    }
    let end = inside.find(['<', '>']).filter(|end| *end <= TAG_BYTES_MAX && inside[*end..].starts_with('>'))?;
    let name = inside[..end].trim_start_matches('/');
    let name = name.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    FENCES.iter().chain(&REASONING).any(|fence| fence.eq_ignore_ascii_case(name)).then_some(end + 2)
}

/// Leaves out a last sentence that does not end. In a text that was cut, that may be a whole line; else it may be the item of a list.
fn whole_sentences(text: &str, was_cut: bool, gone: &mut Vec<String>) -> String {
    let text = text.trim_end();
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, ',' | ';' | ':' | '-' | '–' | '—');
    let begin = text.rfind('\n').map_or(0, |at| at + 1);
    let cut = last_end(&text[begin..]).map(|end| begin + end).or_else(|| was_cut.then_some(begin));
    match cut.filter(|_| text.ends_with(goes_on)) {
        Some(cut) => {
            gone.push(text[cut..].trim().to_owned());
            text[..cut].to_owned()
        }
        None => text.to_owned(),
    }
}

/// Where the last sentence of a line ends that has an end.
fn last_end(line: &str) -> Option<usize> {
    const ENDS: &str = ".!?…。！？؟۔।";
    /// Languages without spaces go on at once.
    const WITHOUT_SPACE: &str = "。！？";
    const CLOSERS: &str = "\"'“”‘’«»‹›」』)]*_";
    let indent = line.len() - line.trim_start().len();
    line.char_indices().rev().filter(|(_, c)| ENDS.contains(*c)).find_map(|(at, c)| {
        // The number of a list's item is no sentence.
        let is_number = line[indent.min(at)..at].bytes().all(|b| b.is_ascii_digit());
        let next = line[at + c.len_utf8()..].trim_start_matches(|c| CLOSERS.contains(c));
        let is_end = next.starts_with(char::is_whitespace) || WITHOUT_SPACE.contains(c);
        (is_end && !is_number).then(|| line.len() - next.len())
    })
}
