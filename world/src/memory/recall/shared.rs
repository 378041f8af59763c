//! Says which words of a query a memory has, so that people see why it was chosen.

use super::{
    corpus::{Corpus, TermNumber, common},
    query::Query,
    terms::Word,
};

/// A row is said to have a word if it has so many of its pieces, and half of them.
const PIECES_MIN: usize = 2;
/// The most words that are named for a row…
const NAMED_MAX: usize = 20;
/// …and the most letters of one, because a player decides how long words are, and each memory names them again.
const LETTERS_MAX: usize = 50;
/// The most words of a query that are looked for.
const ASKED_MAX: usize = 100;

/// The words of a query, as a corpus knows them.
pub struct SharedWords<'a> {
    corpus: &'a Corpus,
    asked: Vec<Asked<'a>>,
    /// The terms of all of them that some rows have, in ascending order.
    terms: Vec<TermNumber>,
    /// Those of the row that is being looked at. Kept, because many rows are looked at.
    had: Vec<TermNumber>,
}

struct Asked<'a> {
    word: &'a Word,
    whole: Option<TermNumber>,
    /// Its pieces, or its pairs of letters; or a single letter. None for those that no row has.
    pieces: Vec<Option<TermNumber>>,
}

impl Corpus {
    /// Looks up the words of a query, to tell which of them rows have.
    #[must_use]
    pub fn shared_words<'a>(&'a self, query: &'a Query) -> SharedWords<'a> {
        let asked = query.words.iter().take(ASKED_MAX).map(|word| Asked {
            word,
            whole: (!word.is_dense).then(|| self.number(word.whole())).flatten(),
            pieces: if word.is_dense && word.len() == 1 {
                word.asked().map(|letter| self.number(letter)).collect()
            } else {
                word.pieces().map(|piece| self.number(piece)).collect()
            },
        });
        let asked: Vec<Asked<'_>> = asked.collect();
        let mut terms: Vec<TermNumber> =
            asked.iter().flat_map(|asked| asked.pieces.iter().chain([&asked.whole])).filter_map(|term| *term).collect();
        terms.sort_unstable();
        terms.dedup();
        SharedWords { corpus: self, asked, terms, had: Vec::new() }
    }
}

impl SharedWords<'_> {
    /// The words that the row at a place has, or has in another form; at most 20, of at most 50 letters. Of a script without spaces, the
    /// runs of letters that both have.
    #[must_use]
    pub fn of(&mut self, place: usize) -> Vec<String> {
        let Some(row) = self.corpus.rows().get(place) else { return Vec::new() };
        self.had.clear();
        self.had.extend(common(&self.terms, &row.terms));
        let mut shared: Vec<String> = Vec::new();
        for asked in &self.asked {
            if asked.word.is_dense {
                asked.runs_in(&self.had).for_each(|run| add(&mut shared, run));
            } else if asked.is_in(&self.had) {
                add(&mut shared, asked.word.text.clone());
            }
            if shared.len() >= NAMED_MAX {
                shared.truncate(NAMED_MAX);
                break;
            }
        }
        shared
    }
}

fn add(shared: &mut Vec<String>, mut word: String) {
    if let Some((end, _)) = word.char_indices().nth(LETTERS_MAX) {
        word.truncate(end);
    }
    if !shared.contains(&word) {
        shared.push(word);
    }
}

impl Asked<'_> {
    /// Whether a row with these terms has the word.
    fn is_in(&self, terms: &[TermNumber]) -> bool {
        let found = self.pieces.iter().filter(|piece| has(terms, **piece)).count();
        has(terms, self.whole) || (found >= PIECES_MIN && found * 2 >= self.pieces.len())
    }

    /// The parts of the word that a row with these terms has.
    fn runs_in(&self, terms: &[TermNumber]) -> impl Iterator<Item = String> {
        let letters = if self.word.len() == 1 { 1 } else { 2 };
        let mut pieces = (0..).zip(&self.pieces);
        let mut is_there = move || pieces.next().map(|(place, piece): (usize, _)| (place, has(terms, *piece)));
        std::iter::from_fn(move || {
            let (start, _) = std::iter::from_fn(&mut is_there).find(|(_, is_there)| *is_there)?;
            let end = std::iter::from_fn(&mut is_there).find(|(_, is_there)| !is_there);
            Some(self.word.part(start, end.map_or(self.word.len(), |(end, _)| end - 1 + letters)))
        })
    }
}

fn has(terms: &[TermNumber], term: Option<TermNumber>) -> bool {
    term.is_some_and(|term| terms.binary_search(&term).is_ok())
}
