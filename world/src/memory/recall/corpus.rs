//! The memories that are ranked together, prepared for it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use base::fold::is_dense;
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
/// How quickly further occurrences of a term stop counting (BM25's k1).
pub(super) const SATURATION: f64 = 1.2;
/// How much less the terms of long rows count (BM25's b).
const LENGTH_SHARE: f64 = 0.75;
/// All memories are read again when the dictionary has grown to so many times its size, and by [`GROWTH_MIN`] terms.
const GROWTH: usize = 2;
const GROWTH_MIN: usize = 4096;

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

/// What two ascending lists have in common.
pub(super) fn common(a: &[TermNumber], b: &[TermNumber]) -> impl Iterator<Item = TermNumber> {
    let mut rest = b.iter().peekable();
    a.iter().copied().filter(move |term| {
        while rest.next_if(|other| *other < term).is_some() {}
        rest.peek() == Some(&term)
    })
}

/// A memory with what was read of it.
#[derive(Debug)]
pub(super) struct Row {
    pub memory: Memory,
    /// Its terms, each once, in ascending order.
    pub terms: Box<[TermNumber]>,
    /// How often each occurs.
    counts: Box<[u16]>,
    /// The number of its terms, repetitions included.
    length: u32,
    /// Its first word, if that can be a head.
    pub first: Option<TermNumber>,
    /// Its numbers and names, and whether it denies something.
    pub marks: Box<[TermNumber]>,
    /// What it takes of a budget; set when somebody first asks for it.
    cost: OnceLock<u32>,
}

impl Row {
    fn read(memory: Memory, dictionary: &mut Arc<ByTerm<TermNumber>>) -> Self {
        let mut number_of = |term: Term| {
            if let Some(number) = dictionary.get(&term) {
                return *number;
            }
            let number = TermNumber::try_from(dictionary.len()).unwrap_or(TermNumber::MAX);
            Arc::make_mut(dictionary).insert(term, number);
            number
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
        let mut marks: Vec<TermNumber> =
            marks(&memory, own.iter().chain(&day)).into_iter().map(&mut number_of).collect();
        marks.sort_unstable();
        marks.dedup();
        Self {
            length: u32::try_from(occurring.len()).unwrap_or(u32::MAX),
            memory,
            terms: terms.into(),
            counts: counts.into(),
            first,
            marks: marks.into(),
            cost: OnceLock::new(),
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
fn marks<'a>(memory: &Memory, words: impl Iterator<Item = &'a Word>) -> Vec<Term> {
    let mut marks = Vec::new();
    for word in words {
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
    for text in [Some(memory.text.as_str()), memory.game_time.as_deref()].into_iter().flatten() {
        // The other memory may have the word in lower case. So these are terms that are searched for.
        let names = capitalised(text).filter(|name| !is_stop_word(&name.plain()));
        marks.extend(names.map(|name| name.whole()));
    }
    marks
}

/// The words of a text that begin with a capital, also inside of others: `Jean-Paul`, `d'Alice`, `昨日はAliceが`.
fn capitalised(text: &str) -> impl Iterator<Item = Word> {
    let runs = text.split(|c: char| !c.is_alphanumeric() || is_dense(c));
    runs.filter(|run| run.starts_with(char::is_uppercase)).filter_map(|run| words(run).into_iter().next())
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
    dictionary: Arc<ByTerm<TermNumber>>,
    /// The size of the dictionary when all memories were last read.
    terms_at_first: usize,
    postings: Postings,
    heads: HashSet<TermNumber>,
    /// The places of those that are pinned, in ascending order.
    pinned: Vec<usize>,
    /// How much the length of each row damps its terms.
    damping: Vec<f64>,
    /// How many older memories there are that were not read.
    unread: usize,
}

impl Corpus {
    /// Reads memories. Their order does not matter.
    #[must_use]
    pub fn of(memories: impl IntoIterator<Item = Memory>) -> Self {
        let mut memories: Vec<Memory> = memories.into_iter().collect();
        // So that terms are numbered as they first occurred.
        memories.sort_by_key(|memory| (memory.seq, memory.id));
        let mut dictionary = Arc::default();
        let rows = memories.into_iter().map(|memory| Arc::new(Row::read(memory, &mut dictionary))).collect();
        let terms = dictionary.len();
        Self::indexed(rows, dictionary, terms)
    }

    /// The corpus after changes: with those of its memories that `stays` keeps, and with others. What stays is not read again.
    #[must_use]
    pub fn renewed(&self, stays: impl Fn(&Memory) -> bool, others: impl IntoIterator<Item = Memory>) -> Self {
        let mut dictionary = self.dictionary.clone();
        let mut rows: Vec<Arc<Row>> = self.rows.iter().filter(|row| stays(&row.memory)).cloned().collect();
        rows.extend(others.into_iter().map(|memory| Arc::new(Row::read(memory, &mut dictionary))));
        if dictionary.len() > self.terms_at_first * GROWTH + GROWTH_MIN {
            // Many of its terms occur no more.
            let mut dictionary = Arc::default();
            let reread = |row: Arc<Row>| {
                Arc::new(Row { cost: row.cost.clone(), ..Row::read(row.memory.clone(), &mut dictionary) })
            };
            let rows = rows.into_iter().map(reread).collect();
            let terms = dictionary.len();
            return Self::indexed(rows, dictionary, terms);
        }
        Self::indexed(rows, dictionary, self.terms_at_first)
    }

    fn indexed(mut rows: Vec<Arc<Row>>, dictionary: Arc<ByTerm<TermNumber>>, terms_at_first: usize) -> Self {
        rows.sort_by_key(|row| (row.memory.seq, row.memory.id));
        let mut beginning: HashMap<TermNumber, usize> = HashMap::new();
        for first in rows.iter().filter_map(|row| row.first) {
            *beginning.entry(first).or_default() += 1;
        }
        let is_head = |count: usize| count >= HEAD_ROWS_MIN && count * HEAD_ONE_IN >= rows.len();
        let heads = beginning.into_iter().filter(|(_, count)| is_head(*count)).map(|(first, _)| first).collect();
        let postings = Postings::of(&rows, dictionary.len());
        let pinned = (0..).zip(&rows).filter(|(_, row)| row.memory.is_pinned).map(|(place, _)| place).collect();
        Self { damping: damping(&rows), postings, heads, pinned, dictionary, terms_at_first, rows, unread: 0 }
    }

    /// The corpus, if so many older memories were not read because there are too many.
    #[must_use]
    pub fn with_unread(self, unread: usize) -> Self {
        Self { unread, ..self }
    }

    /// The number of memories, with those that were not read.
    #[must_use]
    pub fn total(&self) -> usize {
        self.len() + self.unread
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

    /// What the memory at a place takes of a budget. `ask` is asked once about each memory, so it must always say the same.
    pub fn cost(&self, place: usize, ask: impl FnOnce(&Memory) -> u32) -> Option<u32> {
        self.rows.get(place).map(|row| *row.cost.get_or_init(|| ask(&row.memory)))
    }

    /// The places of the pinned memories, in ascending order.
    pub(super) fn pinned(&self) -> &[usize] {
        &self.pinned
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

    /// How much the length of each row damps its terms.
    pub(super) fn damping(&self) -> &[f64] {
        &self.damping
    }

    /// The number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.bytes() + size_of::<Arc<Row>>() + size_of::<f64>()).sum::<usize>()
            // Each entry of a hash map has a byte that finds it, and an eighth of them are free.
            + self.dictionary.capacity() * (size_of::<(Term, TermNumber)>() + 1) * 8 / 7
            + self.pinned.len() * size_of::<usize>()
            + self.postings.starts.len() * size_of::<u32>()
            + self.postings.rows.len() * (size_of::<u32>() + size_of::<u16>())
    }
}

/// BM25's damping by length. A row of the mean length has [`SATURATION`].
fn damping(rows: &[Arc<Row>]) -> Vec<f64> {
    let all: u64 = rows.iter().map(|row| u64::from(row.length)).sum();
    let mean = (all as f64 / rows.len().max(1) as f64).max(1.0);
    let of = |length: u32| SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * f64::from(length) / mean);
    rows.iter().map(|row| of(row.length)).collect()
}
