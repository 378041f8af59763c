//! Find and replace. Both the texts and the patterns come from users, so the size of a pattern, the length of the
//! result and the time are limited.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use garde::Validate;
use pulldown_cmark::{Event, Parser, Tag};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lore::MARKDOWN;
use base::error::{Error, Result};

/// The largest size of a compiled pattern in bytes. A pattern with thousands of repetitions exceeds it.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;
/// The largest cache that a search may use, in bytes.
const CACHE_BYTES_MAX: usize = 1024 * 1024;

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Title,
    Content,
    /// Primary and secondary keys.
    Keys,
}

/// What to find and what to replace it with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Replace {
    /// The text to find, or a regular expression (in the syntax of the Rust crate `regex`).
    #[garde(length(chars, min = 1, max = 500))]
    #[schema(min_length = 1, max_length = 500)]
    pub find: String,
    /// The replacement. With a regular expression, `$1` and `${name}` insert what its groups matched.
    #[garde(length(chars, max = 10_000))]
    #[schema(max_length = 10000)]
    pub with: String,
    /// Where to replace. By default in the content.
    #[garde(length(min = 1, max = 3))]
    #[schema(min_items = 1, max_items = 3)]
    #[serde(default = "content", rename = "in")]
    pub parts: Vec<Part>,
    #[serde(default)]
    pub regex: bool,
    #[serde(default)]
    pub whole_word: bool,
    #[serde(default)]
    pub ignore_case: bool,
    /// Leaves code of Markdown as it is.
    #[serde(skip)]
    #[schema(ignore)]
    pub outside_code: bool,
}

fn content() -> Vec<Part> {
    vec![Part::Content]
}

/// A compiled [`Replace`] with a time limit for all its runs together. The time between runs does not count.
pub struct Replacer {
    pattern: Regex,
    outside_code: bool,
    with: Vec<Piece>,
    time_max: Duration,
    spent_us: AtomicU64,
}

/// A piece of the replacement.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What a group of the pattern matched.
    Group(usize),
}

/// Why a text was not changed.
#[derive(Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The time limit was reached.
    TooSlow,
    /// The result would have more bytes than allowed.
    TooLong,
}

impl Replacer {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// `validation_failed` for a pattern that is invalid or too large.
    pub fn new(replace: &Replace, time_max: Duration) -> Result<Self> {
        let source = if replace.regex { replace.find.clone() } else { regex::escape(&replace.find) };
        let source = if replace.whole_word { format!(r"\b{{start-half}}(?:{source})\b{{end-half}}") } else { source };
        let pattern = RegexBuilder::new(&source)
            .case_insensitive(replace.ignore_case)
            .multi_line(true)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .nest_limit(50)
            .build()
            .map_err(|e| refused(&e))?;
        let with =
            if replace.regex { pieces(&replace.with, &pattern) } else { vec![Piece::Text(replace.with.clone())] };
        let outside_code = replace.outside_code;
        Ok(Self { pattern, outside_code, with, time_max, spent_us: AtomicU64::new(0) })
    }

    /// The text with every match replaced; none if there is no match.
    ///
    /// # Errors
    /// [`Stopped`] when a limit is reached.
    pub fn run(&self, text: &str, bytes_max: usize) -> Result<Option<String>, Stopped> {
        let begun = Instant::now();
        let result = self.replaced(text, bytes_max, begun);
        self.spent_us.fetch_add(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        result
    }

    fn replaced(&self, text: &str, bytes_max: usize, begun: Instant) -> Result<Option<String>, Stopped> {
        let mut out = String::new();
        let mut after = 0;
        let mut found = false;
        // A group may match the whole text and occur in `with` thousands of times. So check each piece before it is
        // added.
        let put = |out: &mut String, piece: &str| {
            if out.len().saturating_add(piece.len()) > bytes_max {
                return Err(Stopped::TooLong);
            }
            out.push_str(piece);
            Ok(())
        };
        let code = if self.outside_code && self.pattern.is_match(text) { code_in(text) } else { Vec::new() };
        // Each search takes linear time, but all of them together may take longer. So check the clock between them.
        for captures in self.pattern.captures_iter(text) {
            self.in_time(begun)?;
            let Some(whole) = captures.get(0) else { break };
            let next = code.partition_point(|code| code.end <= whole.start());
            if code.get(next).is_some_and(|code| code.start <= whole.start()) {
                continue;
            }
            found = true;
            put(&mut out, text.get(after..whole.start()).unwrap_or_default())?;
            for piece in &self.with {
                match piece {
                    Piece::Text(text) => put(&mut out, text)?,
                    Piece::Group(group) => put(&mut out, captures.get(*group).map_or("", |m| m.as_str()))?,
                }
            }
            after = whole.end();
        }
        self.in_time(begun)?;
        if !found {
            return Ok(None);
        }
        put(&mut out, text.get(after..).unwrap_or_default())?;
        Ok(Some(out))
    }

    fn in_time(&self, begun: Instant) -> Result<(), Stopped> {
        let spent = Duration::from_micros(self.spent_us.load(Ordering::Relaxed)) + begun.elapsed();
        if spent > self.time_max { Err(Stopped::TooSlow) } else { Ok(()) }
    }
}

/// Where a text of Markdown has code, in order.
fn code_in(text: &str) -> Vec<Range<usize>> {
    let is_code = |event: &Event<'_>| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
    let events = Parser::new_ext(text, MARKDOWN).into_offset_iter();
    events.filter(|(event, _)| is_code(event)).map(|(_, range)| range).collect()
}

/// Splits the replacement at `$1`, `${1}`, `$name`, `${name}` and `$$`, as the crate `regex` does. A group that the
/// pattern does not have inserts nothing.
fn pieces(with: &str, pattern: &Regex) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = with;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let (name, behind) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or(("", after)),
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(end)
            }
        };
        rest = behind;
        if name.is_empty() && !after.starts_with("{}") {
            text.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
            continue;
        }
        let group = name.parse().ok().or_else(|| pattern.capture_names().position(|n| n == Some(name)));
        if let Some(group) = group {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Group(group));
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    pieces
}

fn refused(error: &regex::Error) -> Error {
    let message = match error {
        regex::Error::CompiledTooBig(_) => "The pattern is too large: it repeats too much.".to_owned(),
        regex::Error::Syntax(text) => {
            let last = text.lines().last().unwrap_or_default();
            format!("This is not a valid regular expression: {}", last.trim_start_matches("error: "))
        }
        _ => "This is not a valid regular expression.".to_owned(),
    };
    Error::invalid("/changes/replace/find", "invalid_value", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacer(find: &str, with: &str, time_max: Duration) -> Replacer {
        let replace = Replace {
            find: find.to_owned(),
            with: with.to_owned(),
            parts: content(),
            regex: true,
            whole_word: false,
            ignore_case: false,
            outside_code: false,
        };
        Replacer::new(&replace, time_max).expect("a pattern")
    }

    #[test]
    fn groups_are_put_in_as_the_crate_does() {
        let text = "Ann meets Bob, and Cid meets Dan.";
        let find = r"(?<first>\w+) meets (\w+)(x)?";
        let pattern = Regex::new(find).expect("a pattern");
        for with in [
            "",
            "$",
            "$$",
            "$$$",
            "$1",
            "${1}",
            "$first",
            "${first}",
            "$2$1",
            "$2 $1!",
            "$1a",
            "${1}a",
            "$0",
            "$3",
            "$4",
            "${4}",
            "$no",
            "${no such}",
            "${",
            "${1",
            "${}",
            "a${}b",
            "$-",
            "$1-$2",
            "ä$1ß",
            "$first_",
            "$$1",
            "$99999999999999999999",
            "{$1}",
        ] {
            let ours = replacer(find, with, Duration::from_secs(9)).run(text, 1000);
            assert_eq!(ours, Ok(Some(pattern.replace_all(text, with).into_owned())), "{with}");
        }
    }

    #[test]
    fn what_is_put_in_stops_at_the_length() {
        let text = "a".repeat(1000);
        let run =
            |with: &str, bytes_max: usize| replacer("(?s)(.*)", with, Duration::from_secs(9)).run(&text, bytes_max);
        assert_eq!(run(&"$1".repeat(5000), 999), Err(Stopped::TooLong));
        assert_eq!(run("$1", 1000).map(|text| text.map(|t| t.len())), Ok(Some(1000)));
        assert_eq!(run("$1", 999), Err(Stopped::TooLong));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "time has to go by, and no task waits")]
    fn only_searching_takes_its_time() {
        let quick = replacer("a", "b", Duration::from_millis(200));
        assert_eq!(quick.run("a", 10), Ok(Some("b".to_owned())));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(quick.run("a", 10), Ok(Some("b".to_owned())));
        assert_eq!(replacer("a", "b", Duration::ZERO).run("a", 10), Err(Stopped::TooSlow));
    }
}
