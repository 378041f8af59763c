//! Ranks the memories of a corpus by a query.
//!
//! The score is BM25 over terms, a factor for whom a memory is about, and a share of the scores of the memories made just before and
//! after. Numbers of rows and mean lengths count only the corpus, so no other memory moves a score. Without a language, a model or a
//! list of names. `docs/decisions/0060-recall.md` says what each step is worth.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    corpus::{Corpus, Row, TermNumber},
    query::Query,
    terms::{Term, Word},
};

/// How quickly further occurrences of a term stop counting (BM25's k1).
const SATURATION: f64 = 1.2;
/// How much long rows count less (BM25's b).
const LENGTH_SHARE: f64 = 0.75;
/// The factor for rows about somebody whom the query names.
const NAMED: f64 = 1.3;
/// The factor for rows about others.
const OTHER: f64 = 0.8;
/// What a row gets of the scores of its neighbours, by their distance.
const NEAR: [f64; 4] = [0.3, 0.3, 0.15, 0.15];
/// From which share of a word's pieces on a row is said to have the word.
const PIECES_SHARE: usize = 2;

/// How relevant a memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// For its own words.
    pub own: f64,
    /// For the memories beside it.
    pub near: f64,
}

impl Score {
    #[must_use]
    pub fn total(self) -> f64 {
        self.own + self.near
    }
}

/// The scores of all rows of a corpus, in their order.
#[derive(Debug)]
pub struct Ranking {
    scores: Vec<Score>,
}

/// A row with its score. The largest is the best; of equals the newest.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    total: f64,
    place: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.total.total_cmp(&other.total).then(self.place.cmp(&other.place))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl Ranking {
    /// The score of the row at a place. None if nothing of the query has to do with it.
    #[must_use]
    pub fn score(&self, place: usize) -> Option<Score> {
        self.scores.get(place).copied().filter(|score| score.total() > 0.0)
    }

    /// The places of all rows with a score, the best first.
    pub fn best_first(&self) -> impl Iterator<Item = usize> {
        let totals = self.scores.iter().map(|score| score.total()).enumerate();
        let mut heap: BinaryHeap<Ranked> =
            totals.filter(|(_, total)| *total > 0.0).map(|(place, total)| Ranked { total, place }).collect();
        std::iter::from_fn(move || heap.pop().map(|ranked| ranked.place))
    }
}

impl Corpus {
    /// Ranks all memories by a query.
    #[must_use]
    pub fn rank(&self, query: &Query) -> Ranking {
        let mut own = self.matches(query);
        let named: Vec<TermNumber> = query.words.iter().filter_map(|word| self.head(word)).collect();
        if !named.is_empty() {
            for (score, row) in own.iter_mut().zip(self.rows()) {
                match row.first.filter(|first| self.is_head(*first)) {
                    Some(head) if named.contains(&head) => *score *= NAMED,
                    Some(_) => *score *= OTHER,
                    None => {}
                }
            }
        }
        let scores = (0..own.len()).map(|place| Score { own: own[place], near: near(&own, place) }).collect();
        Ranking { scores }
    }

    /// BM25 of each row.
    fn matches(&self, query: &Query) -> Vec<f64> {
        let rows = self.rows();
        let mut scores = vec![0.0; rows.len()];
        let scale = LENGTH_SHARE / self.mean_length();
        for (term, weight) in &query.terms {
            let Some(term) = self.number(*term) else { continue };
            let having = self.rows_with(term) as f64;
            let rarity = (1.0 + (rows.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            for (place, count) in self.occurrences(term) {
                let count = f64::from(count);
                let length = f64::from(rows[place].length);
                let damped = count + SATURATION * (1.0 - LENGTH_SHARE + scale * length);
                scores[place] += weight * rarity * count * (SATURATION + 1.0) / damped;
            }
        }
        scores
    }

    /// The head that a word of the query names.
    fn head(&self, word: &Word) -> Option<TermNumber> {
        if word.is_dense {
            return None;
        }
        self.number(word.whole()).filter(|number| self.is_head(*number))
    }

    /// The words of the query that the row at a place has, whole or at least half of their letters. Of a script without spaces,
    /// the runs of letters that both have.
    #[must_use]
    pub fn shared_words(&self, place: usize, query: &Query) -> Vec<String> {
        let Some(row) = self.rows().get(place) else { return Vec::new() };
        let mut shared = Vec::new();
        for word in &query.words {
            if word.is_dense {
                shared.extend(self.shared_runs(row, word));
            } else if self.has_most_of(row, word) {
                shared.push(word.text.clone());
            }
        }
        shared.dedup();
        shared
    }

    fn has(&self, row: &Row, term: Term) -> bool {
        self.number(term).is_some_and(|number| row.terms.binary_search(&number).is_ok())
    }

    fn has_most_of(&self, row: &Row, word: &Word) -> bool {
        let (mut found, mut all) = (0, 0);
        for piece in word.pieces() {
            all += 1;
            found += usize::from(self.has(row, piece));
        }
        found > 0 && found * PIECES_SHARE >= all
    }

    fn shared_runs(&self, row: &Row, word: &Word) -> Vec<String> {
        if word.len() == 1 {
            return word.asked().filter(|letter| self.has(row, *letter)).map(|_| word.part(0, 1)).collect();
        }
        let mut runs = Vec::new();
        let mut start = None;
        for (place, pair) in word.pieces().enumerate() {
            match (self.has(row, pair), start) {
                (true, None) => start = Some(place),
                (false, Some(from)) => {
                    runs.push(word.part(from, place + 1));
                    start = None;
                }
                _ => {}
            }
        }
        runs.extend(start.map(|from| word.part(from, word.len())));
        runs
    }
}

/// What a row gets for its neighbours.
fn near(own: &[f64], place: usize) -> f64 {
    let mut sum = 0.0;
    for (distance, share) in (1..).zip(NEAR) {
        let before = place.checked_sub(distance).and_then(|at| own.get(at));
        let after = own.get(place + distance);
        sum += share * (before.copied().unwrap_or_default() + after.copied().unwrap_or_default());
    }
    sum
}
