//! What a text may contain, and what ends a line.
//!
//! Every stored text keeps one rule: line feeds and tabs are its only control characters. An API client's text that breaks the rule is
//! rejected ([`checked`]). The text of a model, a file or a frontend's report is cleaned ([`cleaned`]), because nobody would correct it.
//! In both cases CR and CR LF become LF.
//!
//! Readers disagree about what ends a line: LF, CR, NEL, U+2028, U+2029 and more. What is written into lines goes through
//! [`on_one_line`], [`lines`] or [`json_on_one_line`]. This also holds for stored text, which may be older than the rule.

use std::{borrow::Cow, fmt};

/// Whether some reader takes this character for the end of a line: Unicode's mandatory breaks, and the separators U+001C to U+001E.
#[must_use]
pub fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a stored text may not contain this character. CR is one of them, but is replaced and never refused.
#[must_use]
pub fn is_unfit(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Whether a text may have unfit characters: a fast check that says yes too often.
fn may_be_unfit(text: &str) -> bool {
    // U+0080 to U+009F begin with the byte C2.
    text.bytes().any(|byte| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f || byte == 0xc2)
}

/// A character that no stored text may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub character: char,
    /// Its position in the text, counted in characters from 1.
    pub position: usize,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, position } = self;
        let code = u32::from(*character);
        write!(
            f,
            "must not contain control characters except line feeds and tabs: character {position} is U+{code:04X}"
        )
    }
}

/// A client's text as it is stored: with LF at the end of each line.
///
/// # Errors
/// The first control character that is not a line end or a tab.
pub fn checked(text: &str) -> Result<Cow<'_, str>, Unfit> {
    if !may_be_unfit(text) {
        return Ok(Cow::Borrowed(text));
    }
    let unfit = text.chars().enumerate().find(|(_, c)| is_unfit(*c) && *c != '\r');
    match unfit {
        Some((at, character)) => Err(Unfit { character, position: at + 1 }),
        None => Ok(cleaned(text)),
    }
}

/// A text of a model, a file or a frontend as it is stored: with LF at the end of each line, and without other control characters
/// than tabs.
#[must_use]
pub fn cleaned(text: &str) -> Cow<'_, str> {
    if !may_be_unfit(text) || !text.contains(is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut cleaner = Cleaner::default();
    Cow::Owned(text.chars().filter_map(|c| cleaner.take(c)).collect())
}

/// Cleans a text that comes in pieces, character by character.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cleaner {
    is_after_cr: bool,
}

impl Cleaner {
    /// The character as it is stored; none if it is dropped.
    pub fn take(&mut self, c: char) -> Option<char> {
        let is_after_cr = std::mem::replace(&mut self.is_after_cr, c == '\r');
        match c {
            '\r' => Some('\n'),
            '\n' if is_after_cr => None,
            c if is_unfit(c) => None,
            c => Some(c),
        }
    }
}

/// A text in which no reader finds a second line: line ends and other control characters are spaces.
#[must_use]
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || ends_line(c);
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut is_after_cr = false;
    for c in text.chars() {
        let is_second = std::mem::replace(&mut is_after_cr, c == '\r') && c == '\n';
        if !is_second {
            out.push(if breaks(c) { ' ' } else { c });
        }
    }
    Cow::Owned(out)
}

/// The lines of a text, however they end. Control characters other than tabs end lines too. U+2028 and U+2029 do not: they may be
/// part of the text, and only the caller knows how its format escapes them.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(|c: char| c.is_control() && c != '\t') else { return rest.take() };
        let (line, after) = text.split_at(at);
        let mut characters = after.chars();
        if characters.next() == Some('\r') && characters.as_str().starts_with('\n') {
            characters.next();
        }
        rest = Some(characters.as_str());
        Some(line)
    })
}

/// JSON in which no reader finds a second line: control characters and line ends that `serde_json` leaves as they are become
/// escapes. `json` must be JSON without line breaks between its tokens.
#[must_use]
pub fn json_on_one_line(json: &str) -> Cow<'_, str> {
    // U+0080 to U+009F begin with C2, and U+2028 and U+2029 with E2 80.
    if !json.bytes().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xe2)) {
        return Cow::Borrowed(json);
    }
    let breaks = |c: char| c.is_control() || ends_line(c);
    if !json.contains(breaks) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // All of them are below U+FFFF, so each is one escape.
        if breaks(c) { out.push_str(&format!("\\u{:04x}", u32::from(c))) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_line_feeds_and_control_characters_are_named_or_dropped() {
        for (text, stored, refused) in [
            ("", "", None),
            ("a\tb\nc é", "a\tb\nc é", None),
            ("a\rb\r\nc\r\r\nd\n\re\r", "a\nb\nc\n\nd\n\ne\n", None),
            ("a\u{2028}b\u{2029}", "a\u{2028}b\u{2029}", None),
            ("é\u{7}b", "éb", Some(('\u{7}', 2))),
            ("\u{0}", "", Some(('\0', 1))),
            ("a\r\n\u{85}\u{7f}", "a\n", Some(('\u{85}', 4))),
            ("a\r\u{1b}\nb", "a\n\nb", Some(('\u{1b}', 3))),
        ] {
            assert_eq!(cleaned(text), stored, "{text:?}");
            match refused {
                None => assert_eq!(checked(text).as_deref(), Ok(stored), "{text:?}"),
                Some((character, position)) => assert_eq!(checked(text), Err(Unfit { character, position })),
            }
        }
    }

    #[test]
    fn what_is_written_into_lines_has_no_second_one() {
        let all = "a\nb\rc\r\nd\u{b}e\u{c}f\u{1c}g\u{85}h\u{2028}i\u{2029}j\tk\u{0}l";
        assert_eq!(on_one_line(all), "a b c d e f g h i j k l");
        assert_eq!(lines(all).collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f", "g", "h\u{2028}i\u{2029}j\tk", "l"]);
        assert_eq!(lines("a\r\n\r\n").collect::<Vec<_>>(), ["a", "", ""]);
        let json = serde_json::to_string(all).unwrap();
        let line = json_on_one_line(&json);
        assert!(!line.contains(|c: char| c.is_control() || ends_line(c)), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), all);
    }
}
