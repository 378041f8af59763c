//! What an entity remembers about a player, in its prompts. The section `memories` of the base stays the same from turn to turn; `recalled`, in the
//! turn's message, holds what is new and what matters to the action. They share one budget. `world::memory::recall` decides what they hold.

use std::{
    fmt::Write as _,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use entity::memory::Source;

use super::{
    base_prompt::BasePrompt,
    cache::Prompts,
    cast::Cast,
    fence,
    key::PromptKey,
    pieces::{Piece, Pieces},
    recall_report::RecallReport,
    segment::Segment,
    turn::{Cause, GOES_ON, LIGHTER, Told},
};
use crate::corpora::{CorpusKey, RANKED_IN_A_BYTE, StampedCorpus, corpus_at, count, newest};
use base::{error::Result, text::on_one_line, threads, tokens};
use db::tenancy::TenantTx;
use world::{
    campaigns::prompt_section::Section,
    memory::recall::{self, Corpus, Memory, QUERY_CHARS_MAX, Query, Score, Selection, settled},
};

/// At most so many memories are read at once, without an index. Of more, prompts choose from an indexed corpus.
const FEW: usize = 500;
/// About how many bytes a token has.
const TOKEN_BYTES: usize = 4;

/// What a prompt holds of an entity's memories beside the section `memories`.
pub enum Recall {
    /// The same for all actions, because everything has room.
    Same(Arc<Segment>),
    /// Chosen for each action from these.
    Chosen(Arc<StampedCorpus>),
}

impl Recall {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Same(Arc::new(Segment::counted(Section::Recalled, "", 0)))
    }

    /// See [`BasePrompt::recalled`].
    #[must_use]
    pub fn same(&self) -> Option<Arc<Segment>> {
        if let Self::Same(segment) = self { Some(segment.clone()) } else { None }
    }
}

/// The memories of a prompt.
pub struct Remembered {
    /// The section of the base.
    pub memories: Segment,
    pub recall: Recall,
    /// How many memories the entity has about the player.
    pub rows: usize,
}

/// Reads what an entity remembers about a player. One statement if everything has room, and those of the corpus if not.
/// `version` is that of the memories' head. `was_chosen` says that the prompt before had no room for everything, so this one
/// hardly will.
///
/// # Errors
/// Database errors; `internal` if the server is stopping.
pub async fn read(
    (prompts, tx): (&Prompts, &TenantTx),
    key: &PromptKey,
    version: i64,
    room: &Room,
    was_chosen: bool,
) -> Result<Remembered> {
    let key = CorpusKey::from(key);
    if room.lines == 0 {
        let rows = count(tx, &key).await?;
        let cut = match rows {
            0 => String::new(),
            _ => format!("none of {rows} memories has room in {} tokens", room.budget),
        };
        let memories = Segment { cut, ..Segment::counted(Section::Memories, "", 0) };
        return Ok(Remembered { memories, recall: Recall::nothing(), rows });
    }
    if !was_chosen {
        let mut few = newest(tx, &key, FEW + 1).await?;
        if few.len() <= FEW {
            few.reverse();
            let bytes = few.iter().map(|memory| memory.text.len()).sum::<usize>().min(room.bytes());
            let room = room.clone();
            if let Some(all) = threads::apart(bytes, move || room.all_of(&few)).await? {
                return Ok(all);
            }
        }
    }
    let (held, room) = (corpus_at(&prompts.corpora, tx, key, version).await?, room.clone());
    threads::apart(room.work(&held), move || room.without_action(&held)).await
}

/// What is recalled with a base whose memories have not changed. No statement, unless memories to choose from are no longer in the cache.
///
/// # Errors
/// Database errors; `internal` if the server is stopping.
pub async fn unchanged((prompts, tx): (&Prompts, &TenantTx), base: &BasePrompt) -> Result<Recall> {
    Ok(match &base.recalled {
        Some(same) => Recall::Same(same.clone()),
        None => Recall::Chosen(corpus_at(&prompts.corpora, tx, (&base.key).into(), base.memory_version()).await?),
    })
}

/// The section `recalled` for an action: what is new, and what matters to it. And why, but for what depends on the whole prompt.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn recalled(base: &BasePrompt, recall: &Recall, told: Told<'_>) -> Result<(Arc<Segment>, RecallReport)> {
    let mut said = base.transcript.exchanges.iter().rev().map(|exchange| &exchange.said);
    let mut earlier = || said.find(|said| !said.trim().is_empty() && ***said != *GOES_ON).cloned();
    let action = match told.cause {
        // It still speaks of the action before it.
        Cause::Continuation => earlier().unwrap_or_default(),
        // A long list of actions, the newest of which matter most.
        Cause::Significance => newest_words(told.action).into(),
        _ => told.action.into(),
    };
    let (earlier, query) = (earlier(), (*action != *told.action).then(|| action.to_string()));
    let room = Room::of(&base.cast, base.layout.budget(Section::Memories, &base.cast.settings));
    let held = match recall {
        Recall::Chosen(held) => held.clone(),
        Recall::Same(segment) => {
            let report = RecallReport { query, rows: base.memory_rows, budget: room.budget, ..RecallReport::default() };
            return Ok((segment.clone(), report));
        }
    };
    let chosen = threads::apart(room.work(&held), move || {
        let query = Query::of_action(&action, earlier.as_deref());
        let selection = room.choose(&held, &query);
        let lines = lines(&held.corpus, &selection, recall::Section::Turn);
        let cut = match selection.left_out {
            0 => String::new(),
            n => format!(
                "{n} of {} memories are left out; `memories` and `recalled` have {} tokens together",
                held.corpus.total(),
                room.budget
            ),
        };
        let segment = Segment { cut, ..room.write(Section::Recalled, &lines) };
        (Arc::new(segment), RecallReport::of(&held.corpus, &query, &selection, room.budget))
    });
    let (segment, report) = chosen.await?;
    Ok((segment, RecallReport { query, ..report }))
}

/// As much of the end of a text as queries read.
fn newest_words(text: &str) -> &str {
    let start = text.char_indices().rev().nth(QUERY_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

/// The room that memories have in a prompt.
#[derive(Clone)]
pub struct Room {
    /// The player's slug and name.
    player: (String, String),
    /// The tokens of both sections.
    budget: u32,
    /// The tokens of all their lines.
    lines: u32,
}

/// A memory that a prompt holds.
struct Line<'m> {
    memory: &'m Memory,
    tokens: u32,
    /// How relevant it is to the action.
    relevance: f64,
}

impl Room {
    /// `budget` is in tokens, with the fences of both sections.
    #[must_use]
    pub fn of(cast: &Cast, budget: u32) -> Self {
        let mut room = Self { player: (cast.player.slug.clone(), cast.player.name.clone()), budget, lines: budget };
        for section in [Section::Memories, Section::Recalled] {
            let (open, close) = room.fence(section);
            room.lines = room.lines.saturating_sub(tokens::count_line(&open) + tokens::count_line(&close));
        }
        room
    }

    fn fence(&self, section: Section) -> (String, String) {
        let (mut open, mut close) = (String::new(), String::new());
        fence::open(&mut open, section.name(), &[("player", &self.player.0), ("name", &self.player.1)]);
        fence::close(&mut close, section.name());
        (open, close)
    }

    /// About how many bytes have room.
    fn bytes(&self) -> usize {
        (self.budget as usize).saturating_mul(TOKEN_BYTES)
    }

    /// A prompt with all these memories, the oldest first. None if they have no room.
    fn all_of(&self, memories: &[Memory]) -> Option<Remembered> {
        let (mut count, mut used) = (counter(), 0u32);
        let line = |memory| {
            let tokens = count(memory);
            used = used.saturating_add(tokens);
            (used <= self.lines).then_some(Line { memory, tokens, relevance: 0.0 })
        };
        let lines: Vec<Line<'_>> = memories.iter().map(line).collect::<Option<_>>()?;
        let (settled, new) = lines.split_at(settled(lines.len()));
        let recall = Recall::Same(Arc::new(self.write(Section::Recalled, new)));
        Some(Remembered { memories: self.write(Section::Memories, settled), recall, rows: memories.len() })
    }

    fn choose(&self, held: &StampedCorpus, query: &Query) -> Selection {
        let (mut count, mut counted) = (counter(), 0);
        let selection = held.corpus.select(query, self.lines, |memory| {
            counted += memory.text.len();
            count(memory)
        });
        held.counted.store(counted, Ordering::Relaxed);
        selection
    }

    /// How much work it will be to choose, in bytes whose tokens are counted in that time.
    fn work(&self, held: &StampedCorpus) -> usize {
        held.corpus.len() / RANKED_IN_A_BYTE + self.bytes() / LIGHTER + held.counted.load(Ordering::Relaxed)
    }

    /// What prompts hold of these memories whatever the action is.
    fn without_action(&self, held: &Arc<StampedCorpus>) -> Remembered {
        let corpus = &held.corpus;
        let selection = self.choose(held, &Query::default());
        let lines = |section| lines(corpus, &selection, section);
        let memories = self.write(Section::Memories, &lines(recall::Section::Base));
        if selection.left_out == 0 {
            let recall = Recall::Same(Arc::new(self.write(Section::Recalled, &lines(recall::Section::Turn))));
            return Remembered { memories, recall, rows: corpus.total() };
        }
        let cut = format!(
            "holds only pinned and new ones of {} memories; `recalled` holds those that matter to the action",
            corpus.total()
        );
        let memories = Segment { cut, ..memories };
        Remembered { memories, recall: Recall::Chosen(held.clone()), rows: corpus.total() }
    }

    /// Writes a section. If the model's context is too small, what is least relevant goes first; of equals the oldest, and pinned memories
    /// last.
    fn write(&self, section: Section, lines: &[Line<'_>]) -> Segment {
        if lines.is_empty() {
            return Segment::counted(section, "", 0);
        }
        let (mut text, close) = self.fence(section);
        let mut tokens = tokens::count_line(&text) + tokens::count_line(&close);
        let mut pieces = Vec::with_capacity(lines.len());
        for Line { memory, tokens: of_line, relevance } in lines {
            let start = text.len();
            put_line(&mut text, memory);
            tokens += of_line;
            let piece = Piece { place: start..text.len(), tokens: *of_line, id: Some(memory.id) };
            pieces.push((memory.is_pinned, *relevance, piece));
        }
        text.push_str(&close);
        pieces.sort_by(|(pinned, relevance, _), (other_pinned, other_relevance, _)| {
            pinned.cmp(other_pinned).then(relevance.total_cmp(other_relevance))
        });
        let frame: Range<usize> = 0..text.len();
        let pieces = pieces.into_iter().map(|(_, _, piece)| piece).collect();
        let pieces = Pieces::listed_as(frame, pieces, ("memory", "memories"));
        // No token crosses a line end, so the tokens of the lines add up to those of the text.
        Segment { pieces, ..Segment::counted(section, text, tokens) }
    }
}

/// The memories of a section, the oldest first.
fn lines<'m>(corpus: &'m Corpus, selection: &Selection, section: recall::Section) -> Vec<Line<'m>> {
    let mut count = counter();
    let mut line = |place: usize, relevance: f64| {
        Some(Line { memory: corpus.memory(place)?, tokens: corpus.cost(place, &mut count)?, relevance })
    };
    selection.scored(section).filter_map(|(place, score)| line(place, score.map_or(0.0, Score::total))).collect()
}

/// Counts the tokens of a memory's line.
fn counter() -> impl FnMut(&Memory) -> u32 {
    let mut line = String::new();
    move |memory| {
        line.clear();
        put_line(&mut line, memory);
        tokens::count_line(&line)
    }
}

/// Writes a memory as models read it: on one line, with when it happened and, if others told it, that they did.
fn put_line(out: &mut String, memory: &Memory) {
    out.push('-');
    if let Some(time) = &memory.game_time {
        let _ = write!(out, " [{}]", fence::inside(&on_one_line(time)));
    }
    if memory.source == Source::Broadcast {
        out.push_str(" [told by those you answer to]");
    }
    for word in memory.text.split_whitespace() {
        out.push(' ');
        out.push_str(&fence::inside(word));
    }
    out.push('\n');
}
