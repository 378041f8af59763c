//! What is asked of the memories: the words of an action.

use super::{
    stop_words::is_stop_word,
    terms::{ByTerm, Term, Word, words},
};

/// The most characters of a text that are read; what follows is ignored.
pub const QUERY_CHARS_MAX: usize = 2000;
/// What a term counts if it comes from stop words alone.
const STOP_WORD_WEIGHT: f64 = 0.25;
/// What the words before it count if an action says too little alone.
const EARLIER_WEIGHT: f64 = 0.2;
/// An action with fewer words that are no stop words says too little.
const TELLING_WORDS_MIN: usize = 2;
/// How many letters of a script without spaces count as a word of their own.
const DENSE_WORD_LETTERS: usize = 3;

/// A text that memories are ranked by.
#[derive(Debug, Default)]
pub struct Query {
    /// Each term once, with what it counts.
    pub(super) terms: Vec<(Term, f64)>,
    /// The words that are no stop words, each once.
    pub(super) words: Vec<Word>,
    /// How many of them are the action's own; these come first.
    own_words: usize,
}

impl Query {
    /// A question of its own.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::weighed(&[(text, 1.0)])
    }

    /// A player's action. If it says too little alone, such as "Why?", the words that the player wrote before count a little.
    #[must_use]
    pub fn of_action(action: &str, earlier: Option<&str>) -> Self {
        let alone = Self::of(action);
        match earlier {
            Some(earlier) if !alone.is_telling() => Self::weighed(&[(action, 1.0), (earlier, EARLIER_WEIGHT)]),
            _ => alone,
        }
    }

    /// The words of the action itself.
    pub(super) fn own_words(&self) -> &[Word] {
        self.words.get(..self.own_words).unwrap_or_default()
    }

    /// Whether it has enough words that are no stop words.
    fn is_telling(&self) -> bool {
        let count = |word: &Word| if word.is_dense { (word.len() / DENSE_WORD_LETTERS).max(1) } else { 1 };
        self.words.iter().map(count).sum::<usize>() >= TELLING_WORDS_MIN
    }

    fn weighed(texts: &[(&str, f64)]) -> Self {
        let mut query = Self::default();
        let mut places: ByTerm<usize> = ByTerm::default();
        for (part, (text, share)) in texts.iter().enumerate() {
            for word in words(within(text)) {
                let is_stop = is_stop_word(&word.plain());
                let weight = if is_stop { share * STOP_WORD_WEIGHT } else { *share };
                for term in word.asked() {
                    let place = *places.entry(term).or_insert_with(|| {
                        query.terms.push((term, 0.0));
                        query.terms.len() - 1
                    });
                    if let Some((_, counted)) = query.terms.get_mut(place) {
                        *counted = counted.max(weight);
                    }
                }
                if !is_stop && !query.words.contains(&word) {
                    query.words.push(word);
                }
            }
            if part == 0 {
                query.own_words = query.words.len();
            }
        }
        query
    }
}

/// The part of a text that is read.
fn within(text: &str) -> &str {
    let end = text.char_indices().nth(QUERY_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}
