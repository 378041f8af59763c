//! Splits texts into words, and words into terms: what two texts must share to have something in common.
//!
//! Words of scripts with spaces become their four-letter pieces, so that endings, compounds and misspelt names still share most of
//! them, and the word itself. Scripts without spaces become their letters and the pairs of neighbouring letters. No language is
//! assumed.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
    sync::LazyLock,
};

use base::fold::{self, fold};

/// How many letters in a row make a term.
const PIECE_LETTERS: usize = 4;
/// From how many letters on a word is a term of its own.
const WORD_LETTERS_MIN: usize = 3;
/// A letter fits into so many bits.
const LETTER_BITS: u32 = 21;
/// Stands before and after each word.
const FRAME: char = '_';

static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A term, as a hash that nobody outside can predict. It has no meaning outside this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u64);

/// Values by term. A term is a hash already.
pub type ByTerm<V> = HashMap<Term, V, BuildHasherDefault<CheapHasher>>;

/// Values by the number of a term in a corpus.
pub type ByNumber<V> = HashMap<u32, V, BuildHasherDefault<CheapHasher>>;

/// Hashes next to nothing: a term is its own hash, and numbers are only spread.
#[derive(Default)]
pub struct CheapHasher(u64);

/// An odd number with its bits mixed: 2^64 divided by the golden ratio (Knuth's multiplicative hashing).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for CheapHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = KEYS.hash_one((self.0, bytes));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(SPREAD);
    }
}

/// What a term is made of. The same letters are different terms in each.
#[derive(Clone, Copy, Hash)]
enum Made {
    Piece,
    Word,
    Letter,
    Pair,
    Mark,
}

impl Term {
    /// At most four letters.
    fn few(made: Made, letters: &[char]) -> Self {
        let packed =
            letters.iter().fold(1u128, |packed, letter| (packed << LETTER_BITS) | u128::from(u32::from(*letter)));
        Self(KEYS.hash_one((made, packed)))
    }

    fn whole(word: &str) -> Self {
        Self(KEYS.hash_one((Made::Word, word)))
    }

    /// Stands for something that texts are compared by, but not searched for.
    pub fn mark(of: &str) -> Self {
        Self(KEYS.hash_one((Made::Mark, of)))
    }
}

/// A run of letters and digits of a folded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it stands in the folded text.
    pub text: String,
    /// Without marks on Latin and Greek letters, in a frame.
    framed: Vec<char>,
    /// Whether its script is written without spaces.
    pub is_dense: bool,
}

impl Word {
    fn new(text: String, is_dense: bool) -> Self {
        let mut framed = Vec::with_capacity(text.len() + 2);
        framed.push(FRAME);
        if text.is_ascii() {
            framed.extend(text.chars());
        } else {
            framed.extend(fold::without_marks(&text).chars());
        }
        framed.push(FRAME);
        Self { text, framed, is_dense }
    }

    fn letters(&self) -> &[char] {
        self.framed.get(1..self.framed.len() - 1).unwrap_or_default()
    }

    /// The number of letters.
    pub fn len(&self) -> usize {
        self.framed.len() - 2
    }

    /// The word without marks on its letters, as in lists of words.
    pub fn plain(&self) -> Cow<'_, str> {
        if self.text.is_ascii() { Cow::Borrowed(&self.text) } else { Cow::Owned(self.letters().iter().collect()) }
    }

    pub fn has_digits(&self) -> bool {
        self.letters().iter().any(|c| c.is_numeric())
    }

    /// The term that stands for the whole word.
    pub fn whole(&self) -> Term {
        if self.len() < WORD_LETTERS_MIN { Term::few(Made::Piece, &self.framed) } else { Term::whole(&self.plain()) }
    }

    /// The pieces of a word, or the pairs of letters. None for a single letter of a script without spaces.
    pub fn pieces(&self) -> impl Iterator<Item = Term> {
        let (made, letters, size) = if self.is_dense {
            (Made::Pair, self.letters(), 2)
        } else {
            (Made::Piece, self.framed.as_slice(), PIECE_LETTERS.min(self.framed.len()))
        };
        letters.windows(size).map(move |piece| Term::few(made, piece))
    }

    /// The terms by which a text with this word is found.
    pub fn stored(&self) -> impl Iterator<Item = Term> {
        let letters = if self.is_dense { self.letters() } else { &[] };
        self.pieces().chain(letters.chunks(1).map(|letter| Term::few(Made::Letter, letter))).chain(self.long_whole())
    }

    /// The terms that a question with this word asks for: of a script without spaces the pairs, or else the only letter.
    pub fn asked(&self) -> impl Iterator<Item = Term> {
        let only = (self.is_dense && self.len() == 1).then(|| Term::few(Made::Letter, self.letters()));
        self.pieces().chain(only).chain(self.long_whole())
    }

    fn long_whole(&self) -> Option<Term> {
        (!self.is_dense && self.len() >= WORD_LETTERS_MIN).then(|| self.whole())
    }

    /// The letters from one place to another.
    pub fn part(&self, from: usize, to: usize) -> String {
        self.letters().get(from..to).unwrap_or_default().iter().collect()
    }
}

/// The words of a text, in their order. An apostrophe inside a word is left out, and so is a final `'s`.
pub fn words(text: &str) -> Vec<Word> {
    let mut reader = Reader::default();
    let folded = fold(text);
    let mut rest = folded.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\'' && reader.is_in_spaced_word() && rest.peek().is_some_and(|next| next.is_alphanumeric()) {
            reader.apostrophe = Some(reader.word.len());
        } else if fold::is_part_of_word(c) {
            reader.add(c);
        } else {
            reader.end();
        }
    }
    reader.end();
    reader.words
}

#[derive(Default)]
struct Reader {
    words: Vec<Word>,
    word: String,
    is_dense: bool,
    /// Where in the word its last apostrophe was.
    apostrophe: Option<usize>,
}

impl Reader {
    fn is_in_spaced_word(&self) -> bool {
        !self.word.is_empty() && !self.is_dense
    }

    fn add(&mut self, c: char) {
        // A mark belongs to the letter before it.
        let is_dense = if c.is_alphanumeric() { fold::is_dense(c) } else { self.is_dense };
        if is_dense != self.is_dense {
            self.end();
        }
        self.is_dense = is_dense;
        self.word.push(c);
    }

    fn end(&mut self) {
        let is_dense = std::mem::take(&mut self.is_dense);
        let mut word = std::mem::take(&mut self.word);
        if let Some(at) = self.apostrophe.take()
            && word.get(at..) == Some("s")
        {
            word.truncate(at);
        }
        if !word.is_empty() {
            self.words.push(Word::new(word, is_dense));
        }
    }
}
