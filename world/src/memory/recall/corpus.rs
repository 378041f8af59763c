//! The memories that are ranked together, prepared for it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use entity::memory::Source;
use uuid::Uuid;

use super::{
    stop_words::{denies, is_stop_word},
    terms::{ByTerm, Term, Word, words},
};

/// A first word is a head if it begins at least so many rows…
const HEAD_ROWS_MIN: usize = 3;
/// …and at least one row of so many.
const HEAD_ONE_IN: usize = 20;
/// The dictionary is written again when fewer than one of so many of its terms occurs.
const DEAD_TERMS_SHARE: usize = 3;
/// A dictionary of so few terms is never written again.
const DEAD_TERMS_MIN: usize = 4096;

/// A memory as it is ranked and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub id: Uuid,
    pub version: i64,
    /// Its place among all memories: later ones have larger numbers.
    pub seq: i64,
    pub text: String,
    /// When it happened, in the world's own words.
    pub game_time: Option<String>,
    pub source: Source,
    pub is_pinned: bool,
}

/// The number of a term in a corpus's dictionary.
pub(super) type TermNumber = u32;

/// A memory with what was read of it.
#[derive(Debug)]
pub(super) struct Row {
    pub memory: Memory,
    /// Its terms, each once, in ascending order.
    pub terms: Box<[TermNumber]>,
    /// How often each occurs.
    counts: Box<[u16]>,
    /// The number of its terms.
    pub length: u32,
    /// Its first word, if that can be a head.
    pub first: Option<TermNumber>,
    /// Its numbers and names, and whether it denies something.
    pub marks: Box<[TermNumber]>,
}

impl Row {
    fn read(memory: Memory, dictionary: &mut ByTerm<TermNumber>) -> Self {
        let mut number_of = |term: Term| {
            let next = TermNumber::try_from(dictionary.len()).unwrap_or(TermNumber::MAX);
            *dictionary.entry(term).or_insert(next)
        };
        let own = words(&memory.text);
        let day = memory.game_time.as_deref().map(words).unwrap_or_default();
        let mut occurring: Vec<TermNumber> =
            own.iter().chain(&day).flat_map(Word::stored).map(&mut number_of).collect();
        occurring.sort_unstable();
        let mut terms = Vec::with_capacity(occurring.len());
        let mut counts: Vec<u16> = Vec::with_capacity(occurring.len());
        for same in occurring.chunk_by(|a, b| a == b) {
            terms.extend(same.first());
            counts.push(u16::try_from(same.len()).unwrap_or(u16::MAX));
        }
        let first = own.first().filter(|word| !word.is_dense && !is_stop_word(&word.plain()));
        let first = first.map(|word| number_of(word.whole()));
        let mut marks: Vec<TermNumber> = marks(&memory.text, &own).into_iter().map(&mut number_of).collect();
        marks.sort_unstable();
        marks.dedup();
        Self {
            length: u32::try_from(occurring.len()).unwrap_or(u32::MAX),
            memory,
            terms: terms.into(),
            counts: counts.into(),
            first,
            marks: marks.into(),
        }
    }

    /// The number of bytes in memory.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.memory.text.len()
            + self.memory.game_time.as_ref().map_or(0, String::len)
            + self.terms.len() * (size_of::<TermNumber>() + size_of::<u16>())
            + self.marks.len() * size_of::<TermNumber>()
    }
}

/// What two memories that say the same must have in common: numbers, names, and whether something is denied.
fn marks(text: &str, own: &[Word]) -> Vec<Term> {
    let mut marks = Vec::new();
    for word in own {
        let plain = word.plain();
        if denies(&plain, word.is_dense) {
            marks.push(Term::mark("-"));
        }
        if word.is_dense {
            marks.extend(runs(&plain, is_numeral).map(Term::mark));
            // Foreign names; a single letter is none.
            marks.extend(runs(&plain, is_katakana).filter(|run| run.chars().nth(1).is_some()).map(Term::mark));
        } else if word.has_digits() {
            marks.push(Term::mark(&plain));
        }
    }
    for typed in text.split_whitespace() {
        let typed = typed.trim_start_matches(|c: char| !c.is_alphanumeric());
        if typed.starts_with(char::is_uppercase)
            && let Some(word) = words(typed).first()
            && !is_stop_word(&word.plain())
        {
            // The other memory may have it in lower case. So this is one of the terms that are searched for.
            marks.push(word.whole());
        }
    }
    marks
}

fn runs(text: &str, is_in: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |c| !is_in(c)).filter(|run| !run.is_empty())
}

fn is_numeral(c: char) -> bool {
    "〇一二三四五六七八九十百千万億两".contains(c)
}

fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30fa}' | 'ー')
}

/// The rows in which each term occurs, in one array for all terms.
#[derive(Debug, Default)]
struct Postings {
    /// Where the rows of each term begin; one more at the end.
    starts: Vec<u32>,
    rows: Vec<u32>,
    counts: Vec<u16>,
}

impl Postings {
    fn of(rows: &[Arc<Row>], terms: usize) -> Self {
        let mut starts = vec![0u32; terms + 1];
        for term in rows.iter().flat_map(|row| &row.terms) {
            starts[*term as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut postings = Self { starts, rows: vec![0; sum as usize], counts: vec![0; sum as usize] };
        for (number, row) in (0..).zip(rows) {
            for (term, count) in row.terms.iter().zip(&row.counts) {
                let place = &mut next[*term as usize];
                postings.rows[*place as usize] = number;
                postings.counts[*place as usize] = *count;
                *place += 1;
            }
        }
        postings
    }

    fn range(&self, term: TermNumber) -> std::ops::Range<usize> {
        let at = |place: usize| self.starts.get(place).map_or(0, |start| *start as usize);
        at(term as usize)..at(term as usize + 1)
    }
}

/// Memories in the order in which they were made, with an index. Nothing outside of them changes how they are ranked.
#[derive(Debug, Default)]
pub struct Corpus {
    rows: Vec<Arc<Row>>,
    dictionary: ByTerm<TermNumber>,
    postings: Postings,
    heads: HashSet<TermNumber>,
    /// The number of terms of all rows.
    length: u64,
}

impl Corpus {
    /// Reads memories. Their order does not matter.
    #[must_use]
    pub fn of(memories: impl IntoIterator<Item = Memory>) -> Self {
        let mut dictionary = ByTerm::default();
        let rows = memories.into_iter().map(|memory| Arc::new(Row::read(memory, &mut dictionary))).collect();
        Self::indexed(rows, dictionary)
    }

    /// The corpus after changes: with those of its memories that `stays` keeps, and with others. What stays is not read again.
    #[must_use]
    pub fn renewed(&self, stays: impl Fn(&Memory) -> bool, others: impl IntoIterator<Item = Memory>) -> Self {
        let kept = self.rows.iter().filter(|row| stays(&row.memory));
        let occurring =
            (1..self.postings.starts.len()).filter(|n| self.postings.starts[n - 1] < self.postings.starts[*n]);
        if self.dictionary.len() > DEAD_TERMS_MIN && self.dictionary.len() > occurring.count() * DEAD_TERMS_SHARE {
            return Self::of(kept.map(|row| row.memory.clone()).chain(others));
        }
        let mut dictionary = self.dictionary.clone();
        let mut rows: Vec<Arc<Row>> = kept.cloned().collect();
        rows.extend(others.into_iter().map(|memory| Arc::new(Row::read(memory, &mut dictionary))));
        Self::indexed(rows, dictionary)
    }

    fn indexed(mut rows: Vec<Arc<Row>>, dictionary: ByTerm<TermNumber>) -> Self {
        rows.sort_by_key(|row| (row.memory.seq, row.memory.id));
        let mut beginning: HashMap<TermNumber, usize> = HashMap::new();
        for first in rows.iter().filter_map(|row| row.first) {
            *beginning.entry(first).or_default() += 1;
        }
        let is_head = |count: usize| count >= HEAD_ROWS_MIN && count * HEAD_ONE_IN >= rows.len();
        let heads = beginning.into_iter().filter(|(_, count)| is_head(*count)).map(|(first, _)| first).collect();
        Self {
            postings: Postings::of(&rows, dictionary.len()),
            length: rows.iter().map(|row| u64::from(row.length)).sum(),
            heads,
            dictionary,
            rows,
        }
    }

    /// The number of memories.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The memories, the oldest first.
    pub fn memories(&self) -> impl DoubleEndedIterator<Item = &Memory> + ExactSizeIterator {
        self.rows.iter().map(|row| &row.memory)
    }

    /// The memory at a place in that order.
    #[must_use]
    pub fn memory(&self, place: usize) -> Option<&Memory> {
        self.rows.get(place).map(|row| &row.memory)
    }

    pub(super) fn rows(&self) -> &[Arc<Row>] {
        &self.rows
    }

    pub(super) fn number(&self, term: Term) -> Option<TermNumber> {
        self.dictionary.get(&term).copied()
    }

    pub(super) fn is_head(&self, word: TermNumber) -> bool {
        self.heads.contains(&word)
    }

    /// How many rows have a term.
    pub(super) fn rows_with(&self, term: TermNumber) -> usize {
        self.postings.range(term).len()
    }

    /// The rows that have a term, and how often.
    pub(super) fn occurrences(&self, term: TermNumber) -> impl Iterator<Item = (usize, u16)> {
        let range = self.postings.range(term);
        let rows = self.postings.rows.get(range.clone()).unwrap_or_default();
        let counts = self.postings.counts.get(range).unwrap_or_default();
        rows.iter().map(|row| *row as usize).zip(counts.iter().copied())
    }

    /// The mean number of terms of a row; never 0.
    pub(super) fn mean_length(&self) -> f64 {
        // Sums beyond 2^53 do not fit into memory.
        (self.length as f64 / self.rows.len().max(1) as f64).max(1.0)
    }

    /// The number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        /// A term and its number, with the room that a hash map leaves free.
        const DICTIONARY_BYTES: usize = 24;
        self.rows.iter().map(|row| row.bytes() + size_of::<Arc<Row>>()).sum::<usize>()
            + self.dictionary.len() * DICTIONARY_BYTES
            + self.postings.starts.len() * size_of::<u32>()
            + self.postings.rows.len() * (size_of::<u32>() + size_of::<u16>())
    }
}
