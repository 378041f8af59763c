//! Texts of cards and lorebooks as they read here: macros filled in, decorators taken off, keys that can be found.

use serde_json::{Map, Value};

/// Keys and tags of one entry.
const WORDS_MAX: usize = 100;
const LINE_CHARS_MAX: usize = 200;

/// A text without macros: `{{char}}` is the character's name, `{{user}}` the player; of a choice the first is taken. What is
/// no macro we know stays as it is.
#[must_use]
pub fn plain(text: &str, character: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest.get(start + 2..).and_then(|r| r.find("}}")) else { break };
        let (before, inside) = (rest.get(..start), rest.get(start + 2..start + 2 + length));
        let (Some(before), Some(inside), Some(after)) = (before, inside, rest.get(start + length + 4..)) else { break };
        out.push_str(before);
        match macro_text(inside, character) {
            Some(text) => out.push_str(&text),
            None => {
                out.push_str("{{");
                out.push_str(inside);
                out.push_str("}}");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    for (tag, text) in [("<char>", character), ("<bot>", character), ("<user>", "the player"), ("<USER>", "the player")]
    {
        if out.contains(tag) {
            out = out.replace(tag, text);
        }
    }
    out
}

fn macro_text(inside: &str, character: &str) -> Option<String> {
    let (name, value) = inside.split_once(':').unwrap_or((inside, ""));
    let name = name.trim().to_lowercase();
    match name.as_str() {
        "char" => Some(character.to_owned()),
        "user" => Some("the player".to_owned()),
        "comment" | "hidden_key" => Some(String::new()),
        _ if name.starts_with("//") => Some(String::new()),
        "random" | "pick" => Some(value.split(',').next().unwrap_or_default().trim().to_owned()),
        "reverse" => Some(value.chars().rev().collect()),
        _ => None,
    }
}

/// What the first lines of an entry say about it, as `@@name value`, and the text without them.
#[must_use]
pub fn decorators(content: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = content;
    while let Some(line) = rest.strip_prefix("@@") {
        let (line, after) = line.split_once('\n').unwrap_or((line, ""));
        let line = line.trim_start_matches('@').trim();
        found.push(line.split_once(char::is_whitespace).map_or((line, ""), |(name, value)| (name, value.trim())));
        rest = after;
    }
    (found, rest)
}

/// A name on one line: control characters are spaces, and there is an end to it.
#[must_use]
pub fn line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LINE_CHARS_MAX).collect();
    text.trim().to_owned()
}

/// At most `chars_max` characters of a text.
#[must_use]
pub fn within(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Keys as they are found here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Keys {
    pub words: Vec<String>,
    /// Regular expressions of which the words they match are known and few: the words stand for them.
    pub spelled_out: u32,
    /// Regular expressions that cannot be spelled out.
    pub unknown: u32,
    /// More than there may be.
    pub too_many: u32,
}

/// Reads keys; `/…/flags` is a regular expression.
#[must_use]
pub fn keys<'a>(given: impl Iterator<Item = &'a str>) -> Keys {
    let mut keys = Keys::default();
    for key in given {
        let found = match expression(key) {
            None => vec![line(key)],
            Some(pattern) => match literals(pattern) {
                Some(words) => {
                    keys.spelled_out += 1;
                    words.iter().map(|w| line(w)).collect()
                }
                None => {
                    keys.unknown += 1;
                    Vec::new()
                }
            },
        };
        for word in found.into_iter().filter(|w| !w.is_empty()) {
            if keys.words.contains(&word) {
            } else if keys.words.len() < WORDS_MAX {
                keys.words.push(word);
            } else {
                keys.too_many += 1;
            }
        }
    }
    keys
}

/// The pattern of a key that is a regular expression.
fn expression(key: &str) -> Option<&str> {
    let (pattern, flags) = key.trim().strip_prefix('/')?.rsplit_once('/')?;
    (!pattern.is_empty() && flags.bytes().all(|f| b"gimsuy".contains(&f))).then_some(pattern)
}

/// All texts that a pattern matches, if they are few.
fn literals(pattern: &str) -> Option<Vec<String>> {
    use regex_syntax::hir::literal::Extractor;
    if pattern.len() > 1000 {
        return None;
    }
    let hir = regex_syntax::ParserBuilder::new().nest_limit(20).build().parse(pattern).ok()?;
    let found = Extractor::new().limit_class(4).limit_total(50).limit_literal_len(LINE_CHARS_MAX).extract(&hir);
    let exact = found.is_exact().then(|| found.literals())??;
    let words: Option<Vec<String>> = exact.iter().map(|l| String::from_utf8(l.as_bytes().to_vec()).ok()).collect();
    words.filter(|words| !words.is_empty() && words.iter().all(|w| !w.trim().is_empty()))
}

/// A member as text; empty if it is none.
#[must_use]
pub fn string<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A member as a list of texts; a text is one with commas, as some write it.
#[must_use]
pub fn list<'a>(members: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    match members.get(name) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => split(text),
        _ => Vec::new(),
    }
}

/// A text with commas as a list.
#[must_use]
pub fn split(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A number as a whole one within bounds.
#[must_use]
pub fn whole(value: &Value, from: i64, to: i64) -> Option<i64> {
    let number = value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|n| n.is_finite())?.clamp(-1e9, 1e9);
        #[expect(clippy::cast_possible_truncation, reason = "it was clamped")]
        Some(number.round() as i64)
    })?;
    Some(number.clamp(from, to))
}
