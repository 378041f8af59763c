//! Says which words of a query a memory has, so that people see why it was chosen.

use super::{
    corpus::{Corpus, Row, TermNumber},
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
        SharedWords { corpus: self, asked: asked.collect() }
    }
}

impl SharedWords<'_> {
    /// The words that the row at a place has, or has in another form; at most 20, of at most 50 letters. Of a script without spaces, the
    /// runs of letters that both have.
    #[must_use]
    pub fn of(&self, place: usize) -> Vec<String> {
        let Some(row) = self.corpus.rows().get(place) else { return Vec::new() };
        let mut shared: Vec<String> = Vec::new();
        for asked in &self.asked {
            let found = if asked.word.is_dense { asked.runs_in(row) } else { asked.word_in(row) };
            for mut word in found {
                if let Some((end, _)) = word.char_indices().nth(LETTERS_MAX) {
                    word.truncate(end);
                }
                if !shared.contains(&word) {
                    shared.push(word);
                }
            }
            if shared.len() >= NAMED_MAX {
                shared.truncate(NAMED_MAX);
                break;
            }
        }
        shared
    }
}

impl Asked<'_> {
    fn word_in(&self, row: &Row) -> Vec<String> {
        let found = self.pieces.iter().filter(|piece| has(row, **piece)).count();
        let is_there = has(row, self.whole) || (found >= PIECES_MIN && found * 2 >= self.pieces.len());
        if is_there { vec![self.word.text.clone()] } else { Vec::new() }
    }

    fn runs_in(&self, row: &Row) -> Vec<String> {
        let letters = if self.word.len() == 1 { 1 } else { 2 };
        let mut runs = Vec::new();
        let mut start = None;
        for (place, piece) in self.pieces.iter().enumerate() {
            match (has(row, *piece), start) {
                (true, None) => start = Some(place),
                (false, Some(from)) => {
                    runs.push(self.word.part(from, place - 1 + letters));
                    start = None;
                }
                _ => {}
            }
        }
        runs.extend(start.map(|from| self.word.part(from, self.word.len())));
        runs
    }
}

fn has(row: &Row, term: Option<TermNumber>) -> bool {
    term.is_some_and(|term| row.terms.binary_search(&term).is_ok())
}
