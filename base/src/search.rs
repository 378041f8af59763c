//! Full-text search in the database: the form in which texts are stored for it, and what a query asks for.
//!
//! PostgreSQL takes what stands between spaces for a word. Chinese, Japanese and Thai have no spaces, and in Korean particles follow
//! a word without one. Letters of these scripts are therefore also stored in pairs and singly, and a query for them asks for their
//! pairs. What is found by its pairs is then compared with the words themselves.

use std::collections::HashSet;

use crate::fold::{fold, is_dense, is_part_of_word};

/// The largest sizes of a stored form and of the pairs in it, in bytes. PostgreSQL refuses to index more than a megabyte of words.
const FOLDED_BYTES_MAX: usize = 400_000;
const PAIRS_BYTES_MAX: usize = 200_000;

/// The form in which a text is stored for searching: folded, and after a line break the pairs and single letters of its scripts
/// without spaces. None for a text in ASCII, which needs no other form than its own.
#[must_use]
pub fn stored(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut stored = fold(text);
    stored.truncate(stored.floor_char_boundary(FOLDED_BYTES_MAX));
    let pairs = pairs(&stored);
    if !pairs.is_empty() {
        stored.push('\n');
        stored.push_str(&pairs);
    }
    Some(stored)
}

/// The words of a text, folded, each once. Scripts without spaces give their pairs of letters, and letters that stand alone. A single letter
/// of another script is none, unless there is nothing else.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let folded = fold(text);
    let has_second = |run: &str| run.chars().nth(1).is_some();
    let spaced = folded.split(|c: char| !is_part_of_word(c) || is_dense(c)).filter(|run| !run.is_empty());
    let is_word = |run: &&str| has_second(run) || run.starts_with(char::is_numeric);
    let (mut words, letters): (Vec<&str>, Vec<&str>) = spaced.partition(is_word);
    for run in folded.split(|c| !is_dense(c)).filter(|run| !run.is_empty()) {
        words.extend(pairs_of(run));
        words.extend(singles(run).filter(|_| !has_second(run)));
    }
    if words.is_empty() {
        words = letters;
    }
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(*word)).map(str::to_owned).collect()
}

/// The different pairs and single letters of scripts without spaces in a folded text, with spaces between them.
fn pairs(folded: &str) -> String {
    let mut seen = HashSet::new();
    let mut out = String::new();
    for run in folded.split(|c| !is_dense(c)).filter(|run| !run.is_empty()) {
        for piece in singles(run).chain(pairs_of(run)).filter(|piece| seen.insert(*piece)) {
            if out.len() + piece.len() >= PAIRS_BYTES_MAX {
                return out;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(piece);
        }
    }
    out
}

fn singles(run: &str) -> impl Iterator<Item = &str> {
    run.char_indices().filter_map(move |(at, c)| run.get(at..at + c.len_utf8()))
}

fn pairs_of(run: &str) -> impl Iterator<Item = &str> {
    let second_ends = run.char_indices().skip(1).map(|(at, c)| at + c.len_utf8());
    run.char_indices().zip(second_ends).filter_map(move |((from, _), to)| run.get(from..to))
}

/// What a search asks for: words, `"phrases"`, `or`, and `-` before what must not occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// For PostgreSQL's `websearch_to_tsquery`. Empty if only [`contains`](Self::contains) and [`lacks`](Self::lacks) decide.
    pub words: String,
    /// Folded texts that all occur in what is found.
    pub contains: Vec<String>,
    /// Folded texts of which none does.
    pub lacks: Vec<String>,
}

impl Query {
    /// Reads what somebody typed.
    #[must_use]
    pub fn of(typed: &str) -> Self {
        let mut query = Self::default();
        let mut has_or = false;
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let is_negated = rest.starts_with('-');
            let term = if is_negated { rest.get(1..).unwrap_or_default() } else { rest };
            let (term, is_phrase, after) = match term.strip_prefix(is_quote) {
                Some(inner) => {
                    let (phrase, after) = inner.split_once(is_quote).unwrap_or((inner, ""));
                    (phrase, true, after)
                }
                None => {
                    let end = term.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(term.len());
                    let (word, after) = term.split_at(end);
                    (word, false, after)
                }
            };
            rest = after.trim_start();
            if !is_phrase && !is_negated && term.eq_ignore_ascii_case("or") {
                has_or = true;
                query.push("or");
            } else {
                query.add(&fold(term).replace('"', " "), is_phrase, is_negated);
            }
        }
        if has_or {
            // Which of the alternatives is meant, only the words say.
            query.contains.clear();
            query.lacks.clear();
        }
        query
    }

    fn add(&mut self, term: &str, is_phrase: bool, is_negated: bool) {
        let term = term.trim_start_matches('-').trim();
        if term.is_empty() {
            return;
        }
        if !term.contains(is_dense) {
            let quote = if is_phrase { "\"" } else { "" };
            self.push(&format!("{}{quote}{term}{quote}", if is_negated { "-" } else { "" }));
            return;
        }
        let runs = || term.split(|c| !is_dense(c)).filter(|run| !run.is_empty()).map(str::to_owned);
        let texts = if is_negated { &mut self.lacks } else { &mut self.contains };
        if is_phrase {
            texts.push(term.to_owned());
        } else {
            texts.extend(runs());
        }
        if is_negated {
            return;
        }
        for word in term.split(is_dense).map(str::trim).filter(|word| !word.is_empty()) {
            self.push(word);
        }
        for run in runs() {
            let is_single = run.chars().nth(1).is_none();
            for piece in singles(&run).filter(|_| is_single).chain(pairs_of(&run)) {
                self.push(piece);
            }
        }
    }

    fn push(&mut self, word: &str) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        self.words.push_str(word);
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

#[cfg(test)]
mod tests {
    use super::{Query, stored};

    #[test]
    fn texts_without_spaces_are_stored_in_pairs() {
        assert_eq!(stored("The North Tower"), None);
        assert_eq!(stored("Zoë’s Haus"), Some("zoë's haus".to_owned()));
        assert_eq!(stored("北の塔。A塔"), Some("北の塔。a塔\n北 の 塔 北の の塔".to_owned()));
        assert_eq!(stored("용사가 왔다"), Some("용사가 왔다\n용 사 가 용사 사가 왔 다 왔다".to_owned()));
    }

    #[test]
    fn words_are_looked_for_one_by_one() {
        assert_eq!(
            super::words("Zoë's cider, a CIDER. 灰色の馬 and 塔"),
            ["zoë", "cider", "and", "灰色", "色の", "の馬", "塔"]
        );
        assert_eq!(super::words("a ?"), ["a"]);
        assert_eq!(
            super::words("room 7 \u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}"),
            ["room", "7", "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}"]
        );
        assert_eq!(super::words(" 🐴 - "), [""; 0]);
    }

    #[test]
    fn a_query_asks_for_pairs_and_for_the_whole() {
        let asks = |typed: &str| {
            let Query { words, contains, lacks } = Query::of(typed);
            (words, contains.join("|"), lacks.join("|"))
        };
        let plain = |words: &str| (words.to_owned(), String::new(), String::new());
        assert_eq!(asks("  The \"North  Tower\" -Or or Zoë "), plain("the \"north  tower\" -or or zoë"));
        assert_eq!(asks("“dragon’s den” – -«x"), plain("\"dragon's den\" -\"x\""));
        assert_eq!(asks("- \"\" -"), plain(""));
        assert_eq!(asks("北の塔"), ("北の の塔".to_owned(), "北の塔".to_owned(), String::new()));
        assert_eq!(asks("塔 old-북"), ("塔 old- 북".to_owned(), "塔|북".to_owned(), String::new()));
        assert_eq!(asks("\"old 北の塔\" -南"), ("old 北の の塔".to_owned(), "old 北の塔".to_owned(), "南".to_owned()));
        assert_eq!(asks("北の塔 or -南の塔"), ("北の の塔 or".to_owned(), String::new(), String::new()));
    }
}
