//! Ranks the memories of a corpus by a query.
//!
//! A memory's score is BM25 over terms, times a factor for whom it is about, plus a share of the scores of the memories that were made
//! just before and after it. Rarity and mean length are counted within the corpus, so no other memory moves a score.
//! `docs/decisions/0060-recall.md` says what each step is worth.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{
    corpus::{Corpus, SATURATION, TermNumber},
    query::Query,
    terms::Word,
};

/// The most occurrences of terms that are counted for a query. The rarest terms come first, so what is left out says least.
const OCCURRENCES_MAX: usize = 2_000_000;
/// The factor for rows about somebody whom the query names.
const NAMED: f64 = 1.3;
/// The factor for rows about others.
const OTHER: f64 = 0.8;
/// What a row gets of the scores of its neighbours, by their distance.
const NEAR: [f64; 4] = [0.3, 0.3, 0.15, 0.15];

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

/// The scores of all rows of a corpus.
#[derive(Debug)]
pub struct Ranking {
    /// The scores for their own words, in the order of the rows.
    own: Vec<f64>,
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
    /// The score of the row at a place. None if it has nothing to do with the query.
    #[must_use]
    pub fn score(&self, place: usize) -> Option<Score> {
        let score = Score { own: *self.own.get(place)?, near: near(&self.own, place) };
        (score.total() > 0.0).then_some(score)
    }

    /// The places of all rows with a score, the best first.
    pub fn best_first(&self) -> impl Iterator<Item = usize> {
        let scored = (0..self.own.len()).filter_map(|place| Some(Ranked { total: self.score(place)?.total(), place }));
        let mut heap: BinaryHeap<Ranked> = scored.collect();
        std::iter::from_fn(move || heap.pop().map(|ranked| ranked.place))
    }
}

impl Corpus {
    /// Ranks all memories by a query.
    #[must_use]
    pub fn rank(&self, query: &Query) -> Ranking {
        let mut own = self.matches(query);
        let named: Vec<TermNumber> = query.own_words().iter().filter_map(|word| self.head(word)).collect();
        if !named.is_empty() {
            for (score, row) in own.iter_mut().zip(self.rows()) {
                match row.first.filter(|first| self.is_head(*first)) {
                    Some(head) if named.contains(&head) => *score *= NAMED,
                    Some(_) => *score *= OTHER,
                    None => {}
                }
            }
        }
        Ranking { own }
    }

    /// BM25 of each row.
    fn matches(&self, query: &Query) -> Vec<f64> {
        let damping = self.damping();
        let mut scores = vec![0.0; damping.len()];
        for (term, weight) in self.counted_terms(query) {
            let having = self.rows_with(term) as f64;
            let rarity = (1.0 + (damping.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            let most = weight * rarity * (SATURATION + 1.0);
            for (place, count) in self.occurrences(term) {
                let count = f64::from(count);
                scores[place] += most * count / (count + damping[place]);
            }
        }
        scores
    }

    /// The terms of a query that occur. If they occur too often, the rarest of them.
    fn counted_terms(&self, query: &Query) -> Vec<(TermNumber, f64)> {
        let known = query.terms.iter().filter_map(|(term, weight)| Some((self.number(*term)?, *weight)));
        let mut terms: Vec<(TermNumber, f64)> = known.collect();
        let occurrences =
            |terms: &[(TermNumber, f64)]| terms.iter().map(|(term, _)| self.rows_with(*term)).sum::<usize>();
        if occurrences(&terms) > OCCURRENCES_MAX {
            terms.sort_by_key(|(term, _)| self.rows_with(*term));
            let mut counted = 0;
            terms.retain(|(term, _)| {
                counted += self.rows_with(*term);
                counted <= OCCURRENCES_MAX
            });
        }
        terms
    }

    /// The head that a word of the query names.
    fn head(&self, word: &Word) -> Option<TermNumber> {
        if word.is_dense {
            return None;
        }
        self.number(word.whole()).filter(|number| self.is_head(*number))
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
