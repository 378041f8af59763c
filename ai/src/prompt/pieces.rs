//! What may be left out of a text if its prompt does not fit into the model's context: lore entries, memories, lines.

use std::{collections::HashSet, ops::Range, sync::Arc};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{LoreDecision, LoreReason, hash::short_hash};
use base::{error::Result, tokens};

/// A part of a text that may be left out alone.
#[derive(Clone, Debug)]
pub struct Piece {
    pub place: Range<usize>,
    pub tokens: u32,
    /// The lore entry that it tells.
    pub lore: Option<Uuid>,
}

/// The parts of a text that may be left out. The first one goes first.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pieces: Vec<Piece>,
    /// What goes with the last of them: everything that stands only for them.
    frame: Range<usize>,
    /// What one of them is called, and several.
    what: (&'static str, &'static str),
}

/// A text without some of its pieces.
pub struct Lessened {
    pub text: Arc<str>,
    pub tokens: u32,
    pub hash: String,
    /// What was left out, in words.
    pub cut: String,
    pub pieces: Pieces,
    /// The places in the former text that were left out.
    gone: Gone,
    lore: HashSet<Uuid>,
}

/// Places of a text that are left out, in order, each with the number of bytes that are left out before it.
#[derive(Default)]
struct Gone(Vec<(usize, Range<usize>)>);

impl Pieces {
    /// Lore entries with their priorities: the lowest priority goes first, then the oldest entry.
    #[must_use]
    pub fn of_lore(frame: Range<usize>, mut entries: Vec<(i32, Piece)>) -> Self {
        entries.sort_by_key(|(priority, piece)| (*priority, piece.lore));
        let pieces = entries.into_iter().map(|(_, piece)| piece).collect();
        Self { pieces, frame, what: ("entry", "entries") }
    }

    /// The lines of a fenced text: all between its first and its last line. With `last_first` the last line goes first, otherwise the first.
    #[must_use]
    pub fn of_lines(text: &str, what: (&'static str, &'static str), last_first: bool) -> Self {
        let mut at = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let place = at..at + line.len();
            at = place.end;
            Piece { place, tokens: tokens::count_line(line), lore: None }
        });
        let mut pieces: Vec<Piece> = lines.skip(1).collect();
        pieces.pop();
        if last_first {
            pieces.reverse();
        }
        Self { pieces, frame: 0..text.len(), what }
    }

    /// The same, if `bytes` of other text stand before them.
    #[must_use]
    pub fn after(mut self, bytes: usize) -> Self {
        let moved = |place: &Range<usize>| place.start + bytes..place.end + bytes;
        self.frame = moved(&self.frame);
        self.pieces.iter_mut().for_each(|piece| piece.place = moved(&piece.place));
        self
    }

    /// The number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pieces.len() * size_of::<Piece>()
    }

    /// The text of `has` tokens without as many pieces as it takes to save `excess` tokens, or without all of them. None if there are no
    /// pieces. `context` is the size of the model's context, for people who read what was left out.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub async fn lessen(&self, text: &str, has: u32, excess: u32, context: u32) -> Result<Option<Lessened>> {
        let (mut out, mut saved) = (0, 0u32);
        let most = has.saturating_sub(excess);
        while out < self.pieces.len() {
            for piece in self.pieces.iter().skip(out) {
                if saved >= excess && out > 0 {
                    break;
                }
                saved = saved.saturating_add(piece.tokens);
                out += 1;
            }
            let gone = self.gone(out);
            let left: Arc<str> = gone.left_of(text).into();
            let tokens = tokens::count_apart(left.clone()).await?;
            if tokens > most && out < self.pieces.len() {
                // The pieces have fewer tokens than was thought.
                saved = has.saturating_sub(tokens);
                continue;
            }
            let what = if out == 1 { self.what.0 } else { self.what.1 };
            return Ok(Some(Lessened {
                tokens,
                hash: short_hash(&Sha256::digest(left.as_bytes())),
                cut: format!("{out} {what} left out to fit into the context of {context} tokens"),
                pieces: self.rest(out, &gone),
                lore: self.pieces.iter().take(out).filter_map(|piece| piece.lore).collect(),
                text: left,
                gone,
            }));
        }
        Ok(None)
    }

    /// The places of the first pieces.
    fn gone(&self, out: usize) -> Gone {
        if out == self.pieces.len() {
            return Gone::of(vec![self.frame.clone()]);
        }
        Gone::of(self.pieces.iter().take(out).map(|piece| piece.place.clone()).collect())
    }

    /// The other pieces, where they stand once those are gone.
    fn rest(&self, out: usize, gone: &Gone) -> Self {
        let rest = self.pieces.iter().skip(out);
        let pieces = rest.map(|piece| Piece { place: gone.moved(&piece.place), ..piece.clone() }).collect();
        Self { pieces, frame: gone.moved(&self.frame), what: self.what }
    }
}

impl Gone {
    fn of(mut places: Vec<Range<usize>>) -> Self {
        places.sort_by_key(|place| place.start);
        let mut before = 0;
        let gone = places.into_iter().map(|place| {
            let entry = (before, place.clone());
            before += place.len();
            entry
        });
        Self(gone.collect())
    }

    fn left_of(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for (_, place) in &self.0 {
            out.push_str(text.get(from..place.start).unwrap_or_default());
            from = place.end;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out
    }

    /// Where something stands once these places are gone.
    fn moved(&self, place: &Range<usize>) -> Range<usize> {
        self.at(place.start)..self.at(place.end)
    }

    fn at(&self, at: usize) -> usize {
        let before = self.0.partition_point(|(_, place)| place.start < at);
        let last = before.checked_sub(1).and_then(|last| self.0.get(last));
        at - last.map_or(0, |(before, place)| before + place.end.min(at) - place.start)
    }
}

impl Lessened {
    /// Where something stands now that stood outside of what was left out.
    #[must_use]
    pub fn moved(&self, place: &Range<usize>) -> Range<usize> {
        self.gone.moved(place)
    }

    /// The decisions about lore, with those that this revises.
    #[must_use]
    pub fn decided(&self, lore: &[LoreDecision], context: u32) -> Vec<LoreDecision> {
        let decide = |decision: &LoreDecision| match self.lore.contains(&decision.id) {
            true => LoreDecision { included: false, reason: LoreReason::OverContext { context }, ..decision.clone() },
            false => decision.clone(),
        };
        lore.iter().map(decide).collect()
    }

    /// What was left out of the text, now and before.
    #[must_use]
    pub fn cut_after(&self, before: &str) -> String {
        if before.is_empty() { self.cut.clone() } else { format!("{before}; {}", self.cut) }
    }
}
