//! Finds memories that say again what one already taken says.
//!
//! A memory is an echo of another if their terms are the same but for a fifth (Jaccard's index of at least 0.8), and they differ in no
//! number, no name and no negation: "owes 12 silver" is no echo of "owes 15 silver".

use std::collections::HashMap;

use super::corpus::{Corpus, Row, TermNumber};

/// Two rows are alike if both have at least `SHARED` of `OUT_OF` of the terms that either has.
const SHARED: usize = 4;
const OUT_OF: usize = 5;
/// The most rows that one row is compared with…
const COMPARED_MAX: usize = 32;
/// …and the most entries of [`Echoes`] that are read to find them.
const ENTRIES_MAX: usize = 4096;

/// The rows that were taken, by their rarest terms.
///
/// Two rows that have four of five terms in common have at least one of these in common (prefix filtering, as in similarity joins of
/// sets): the rarest fifth of either, and one more.
pub(super) struct Echoes<'a> {
    corpus: &'a Corpus,
    taken: HashMap<TermNumber, Vec<usize>>,
    /// The rarest terms of the row that is offered, and the rows that share some of them. Kept, because very many rows are offered.
    rarest: Vec<TermNumber>,
    others: Vec<usize>,
}

impl<'a> Echoes<'a> {
    pub fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, taken: HashMap::new(), rarest: Vec::new(), others: Vec::new() }
    }

    /// Takes a row, unless it is an echo of one that was taken. Returns whether it was taken.
    pub fn take(&mut self, place: usize) -> bool {
        let Some(row) = self.corpus.rows().get(place) else { return false };
        self.find_rarest(row);
        if self.is_echo(row) {
            return false;
        }
        for term in &self.rarest {
            self.taken.entry(*term).or_default().push(place);
        }
        true
    }

    fn is_echo(&mut self, row: &Row) -> bool {
        let entries = self.rarest.iter().filter_map(|term| self.taken.get(term)).flatten().take(ENTRIES_MAX);
        self.others.clear();
        self.others.extend(entries);
        self.others.sort_unstable();
        self.others.dedup();
        // The most recently made first.
        self.others.iter().rev().take(COMPARED_MAX).any(|other| {
            self.corpus.rows().get(*other).is_some_and(|other| is_alike(row, other) && !differ(row, other))
        })
    }

    fn find_rarest(&mut self, row: &Row) {
        let terms = &mut self.rarest;
        terms.clear();
        terms.extend_from_slice(&row.terms);
        let wanted = terms.len() - (terms.len() * SHARED).div_ceil(OUT_OF) + 1;
        if wanted < terms.len() {
            terms.select_nth_unstable_by_key(wanted, |term| (self.corpus.rows_with(*term), *term));
            terms.truncate(wanted);
        }
    }
}

/// Whether the terms of two rows are nearly the same.
fn is_alike(a: &Row, b: &Row) -> bool {
    let (fewer, more) = (a.terms.len().min(b.terms.len()), a.terms.len().max(b.terms.len()));
    if fewer * OUT_OF < more * SHARED {
        return false;
    }
    let both = common(&a.terms, &b.terms);
    both * OUT_OF >= (fewer + more - both) * SHARED
}

/// How many numbers two ascending lists have in common.
fn common(a: &[TermNumber], b: &[TermNumber]) -> usize {
    let (mut at, mut found) = (0, 0);
    for term in a {
        while b.get(at).is_some_and(|other| other < term) {
            at += 1;
        }
        found += usize::from(b.get(at) == Some(term));
    }
    found
}

/// Whether one has a number, a name or a negation that the other lacks.
fn differ(a: &Row, b: &Row) -> bool {
    let lacks =
        |row: &Row, mark: &TermNumber| row.marks.binary_search(mark).is_err() && row.terms.binary_search(mark).is_err();
    a.marks.iter().any(|mark| lacks(b, mark)) || b.marks.iter().any(|mark| lacks(a, mark))
}
