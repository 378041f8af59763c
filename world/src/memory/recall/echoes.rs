//! Finds memories that say again what one already taken says.
//!
//! A memory is an echo of another if their terms are the same but for a fifth (Jaccard's index of at least 0.8), and they differ in no
//! number, no name and no negation: "owes 12 silver" is no echo of "owes 15 silver".

use super::{
    corpus::{Corpus, Row, TermNumber, common},
    terms::ByNumber,
};

/// Two rows are alike if both have at least `SHARED` of `OUT_OF` of the terms that either has.
const SHARED: usize = 4;
const OUT_OF: usize = 5;
/// The most rows that one row is compared with…
const COMPARED_MAX: usize = 32;
/// …and the most entries of [`Echoes`] that are read to find them.
const ENTRIES_MAX: usize = 4096;

/// The rows that were taken, by their last terms.
///
/// Two rows that have four of five terms in common have at least one of these in common (prefix filtering, as in similarity joins of
/// sets): the last fifth of either, and one more, in any order of all terms. Terms are numbered as they first occur, so the common ones usually
/// come first.
pub(super) struct Echoes<'a> {
    corpus: &'a Corpus,
    /// The newest entry of each term.
    newest: ByNumber<usize>,
    entries: Vec<Entry>,
    /// The rows that share a last term with the row that is offered. Kept, because very many rows are offered.
    others: Vec<usize>,
}

/// A row that was taken, for one of its terms.
struct Entry {
    row: usize,
    /// The entry of the same term that was made before it.
    before: Option<usize>,
}

impl<'a> Echoes<'a> {
    pub fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, newest: ByNumber::default(), entries: Vec::new(), others: Vec::new() }
    }

    /// Takes a row, unless it is an echo of one that was taken. Returns whether it was taken.
    pub fn take(&mut self, place: usize) -> bool {
        let Some(row) = self.corpus.rows().get(place) else { return false };
        if self.is_echo(row) {
            return false;
        }
        for term in last_terms(row) {
            let before = self.newest.insert(*term, self.entries.len());
            self.entries.push(Entry { row: place, before });
        }
        true
    }

    fn is_echo(&mut self, row: &Row) -> bool {
        let of_term = |term| {
            let entry = |at: &usize| self.entries.get(*at);
            std::iter::successors(self.newest.get(term).and_then(entry), move |newer| {
                newer.before.as_ref().and_then(entry)
            })
        };
        let entries = last_terms(row).iter().rev().flat_map(of_term).take(ENTRIES_MAX);
        self.others.clear();
        self.others.extend(entries.map(|entry| entry.row));
        self.others.sort_unstable();
        self.others.dedup();
        // The most recently made first.
        self.others.iter().rev().take(COMPARED_MAX).any(|other| {
            self.corpus.rows().get(*other).is_some_and(|other| is_alike(row, other) && !differ(row, other))
        })
    }
}

/// The last terms of a row: of two rows that are alike, at least one is the same.
fn last_terms(row: &Row) -> &[TermNumber] {
    let differing = row.terms.len() - (row.terms.len() * SHARED).div_ceil(OUT_OF);
    let before = row.terms.len().saturating_sub(differing + 1);
    row.terms.get(before..).unwrap_or_default()
}

/// Whether the terms of two rows are nearly the same.
fn is_alike(a: &Row, b: &Row) -> bool {
    let (fewer, more) = (a.terms.len().min(b.terms.len()), a.terms.len().max(b.terms.len()));
    if fewer * OUT_OF < more * SHARED {
        return false;
    }
    let both = common(&a.terms, &b.terms).count();
    both * OUT_OF >= (fewer + more - both) * SHARED
}

/// Whether one has a number, a name or a negation that the other lacks.
fn differ(a: &Row, b: &Row) -> bool {
    let lacks =
        |row: &Row, mark: &TermNumber| row.marks.binary_search(mark).is_err() && row.terms.binary_search(mark).is_err();
    a.marks.iter().any(|mark| lacks(b, mark)) || b.marks.iter().any(|mark| lacks(a, mark))
}
