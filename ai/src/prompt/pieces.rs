//! What may be left out of a text if its prompt does not fit into the model's context: lore entries, memories, lines.

use std::{collections::HashSet, ops::Range, sync::Arc};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{LoreDecision, LoreReason, hash::short_hash};
use base::{error::Result, threads, tokens};

/// A part of a text that may be left out alone.
#[derive(Clone, Debug)]
pub struct Piece {
    pub place: Range<usize>,
    pub tokens: u32,
    /// The lore entry or the memory that it tells.
    pub id: Option<Uuid>,
}

/// The parts of a text that may be left out.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    kind: Kind,
    /// What goes with the last of them: everything that stands only for them.
    frame: Range<usize>,
    /// What one of them is called, and several.
    what: (&'static str, &'static str),
}

#[derive(Clone, Debug)]
enum Kind {
    /// These, the first one first.
    Listed(Vec<Piece>),
    /// The lines between the first and the last line of the frame, the last one first.
    Lines,
}

impl Default for Kind {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
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
    ids: HashSet<Uuid>,
}

/// Places of a text that are left out, in order, each with the number of bytes that are left out before it.
#[derive(Default)]
struct Gone(Vec<(usize, Range<usize>)>);

impl Pieces {
    /// Lore entries with their priorities: the lowest priority goes first, then the oldest entry.
    #[must_use]
    pub fn of_lore(frame: Range<usize>, mut entries: Vec<(i32, Piece)>) -> Self {
        entries.sort_by_key(|(priority, piece)| (*priority, piece.id));
        let pieces = entries.into_iter().map(|(_, piece)| piece).collect();
        Self::listed_as(frame, pieces, ("entry", "entries"))
    }

    /// Pieces in the order in which they go. `what` is what one of them is called, and several.
    #[must_use]
    pub fn listed_as(frame: Range<usize>, pieces: Vec<Piece>, what: (&'static str, &'static str)) -> Self {
        Self { kind: Kind::Listed(pieces), frame, what }
    }

    /// The lines of a fenced text: all between its first and its last line. The last one goes first.
    #[must_use]
    pub fn of_lines(text: &str, what: (&'static str, &'static str)) -> Self {
        Self { kind: Kind::Lines, frame: 0..text.len(), what }
    }

    /// The same, if `bytes` of other text stand before them.
    #[must_use]
    pub fn after(mut self, bytes: usize) -> Self {
        let moved = |place: &Range<usize>| place.start + bytes..place.end + bytes;
        self.frame = moved(&self.frame);
        if let Kind::Listed(pieces) = &mut self.kind {
            pieces.iter_mut().for_each(|piece| piece.place = moved(&piece.place));
        }
        self
    }

    /// What they tell, as far as that is known.
    pub fn ids(&self) -> impl Iterator<Item = Uuid> {
        let pieces: &[Piece] = if let Kind::Listed(pieces) = &self.kind { pieces } else { &[] };
        pieces.iter().filter_map(|piece| piece.id)
    }

    /// The number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        if let Kind::Listed(pieces) = &self.kind { pieces.len() * size_of::<Piece>() } else { 0 }
    }

    /// The pieces of a text, the first one to go first.
    fn listed(&self, text: &str) -> Vec<Piece> {
        if let Kind::Listed(pieces) = &self.kind {
            return pieces.clone();
        }
        let mut at = self.frame.start;
        let lines = text.get(self.frame.clone()).unwrap_or_default().split_inclusive('\n').map(|line| {
            let place = at..at + line.len();
            at = place.end;
            Piece { place, tokens: tokens::count_line(line), id: None }
        });
        let mut pieces: Vec<Piece> = lines.skip(1).collect();
        pieces.pop();
        pieces.reverse();
        pieces
    }

    /// The text of `has` tokens without as many pieces as it takes to save `excess` tokens, or without all of them. None if there are no
    /// pieces. `context` is the size of the model's context, for people who read what was left out.
    ///
    /// # Errors
    /// `internal` if the server is stopping.
    pub async fn lessen(&self, text: &Arc<str>, has: u32, excess: u32, context: u32) -> Result<Option<Lessened>> {
        let (its_pieces, text) = (self.clone(), text.clone());
        threads::apart(text.len(), move || its_pieces.lessened(&text, has, excess, context)).await
    }

    fn lessened(&self, text: &str, has: u32, excess: u32, context: u32) -> Option<Lessened> {
        /// So many times the pieces may have fewer tokens than was thought. After that, more and more go at a time.
        const PATIENCE: usize = 4;
        let pieces = self.listed(text);
        if pieces.is_empty() {
            return None;
        }
        let most = has.saturating_sub(excess);
        let (mut out, mut saved) = (0, 0u32);
        for round in 0_usize.. {
            let least = out + (1_usize << round.saturating_sub(PATIENCE).min(16));
            for piece in pieces.iter().skip(out) {
                if saved >= excess && out >= least {
                    break;
                }
                saved = saved.saturating_add(piece.tokens);
                out += 1;
            }
            let gone = Gone::of(match out == pieces.len() {
                true => vec![self.frame.clone()],
                false => pieces.iter().take(out).map(|piece| piece.place.clone()).collect(),
            });
            let left: Arc<str> = gone.left_of(text).into();
            let tokens = tokens::count(&left);
            if tokens > most && out < pieces.len() {
                saved = has.saturating_sub(tokens);
                continue;
            }
            let what = if out == 1 { self.what.0 } else { self.what.1 };
            return Some(Lessened {
                tokens,
                hash: short_hash(&Sha256::digest(left.as_bytes())),
                cut: format!("{out} {what} left out to fit into the context of {context} tokens"),
                pieces: self.rest(&pieces, out, &gone),
                ids: pieces.iter().take(out).filter_map(|piece| piece.id).collect(),
                text: left,
                gone,
            });
        }
        None
    }

    /// The other pieces, where they stand once those are gone.
    fn rest(&self, pieces: &[Piece], out: usize, gone: &Gone) -> Self {
        let kind = match &self.kind {
            Kind::Lines if out < pieces.len() => Kind::Lines,
            _ => {
                let rest = pieces.iter().skip(out);
                Kind::Listed(rest.map(|piece| Piece { place: gone.moved(&piece.place), ..piece.clone() }).collect())
            }
        };
        Self { kind, frame: gone.moved(&self.frame), what: self.what }
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
        let decide = |decision: &LoreDecision| match self.ids.contains(&decision.id) {
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
