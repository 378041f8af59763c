//! Replies in `<response><narrative>…</narrative><tools>[…]</tools></response>`, as models really write them.
//!
//! This is not an XML parser: everything between the few known tags is text. So raw `&` and `<`, quoted tags and missing ends are
//! no problem. It goes from `<` to `<` once. Searches ahead (for `]]>` or `</tools>`) fail at most once.

use super::tag::{Kind, Name, Tag, tag_at, tags};
use super::text::{decode_entities, decode_entities_into, without_fences};
use super::{call::ProposedCall, calls, draft::Draft, json};

const CDATA: &str = "<![CDATA[";
const CDATA_END: &str = "]]>";
/// Parses a reply. `None` if the text has nothing in this dialect.
pub(super) fn parse(text: &str) -> Option<Draft> {
    let response = tags(text).find(|tag| tag.name == Name::Response && tag.kind != Kind::Close);
    if let Some(tag) = response {
        return match tag.kind {
            Kind::Empty => Some(Draft::default()),
            _ => Some(Scanner::new(&text[tag.end..], true).run()),
        };
    }
    tags(text)
        .any(|tag| match tag.name {
            Name::Narrative => tag.kind == Kind::Open,
            Name::Tools => tag.kind == Kind::Empty || (tag.kind == Kind::Open && holds_calls(&text[tag.end..])),
            Name::Response => false,
        })
        .then(|| Scanner::new(text, false).run())
        .or_else(|| is_cut_at_once(text).then(|| Draft::broken("", "the reply is cut: it ends inside <response>")))
}

fn is_cut_at_once(text: &str) -> bool {
    const TAG: &str = "<response>";
    text.len() < TAG.len() && text.starts_with('<') && TAG.starts_with(&text.to_ascii_lowercase())
}

/// Whether a `<tools>` outside of a response begins a list, and is not just mentioned.
fn holds_calls(rest: &str) -> bool {
    let rest = rest.trim_start();
    ["[", "{", "```", CDATA, "</tools"].iter().any(|start| rest.starts_with(start))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Whether the text is inside `<response>`. If not, the whole reply is read.
    wrapped: bool,
    narrative: Option<String>,
    /// Text outside of the elements. It is the narrative if there is no such element.
    stray: String,
    keep_stray: bool,
    calls: Vec<ProposedCall>,
    tools_seen: bool,
    tools_end_missing: bool,
    cdata_end_missing: bool,
    error: Option<String>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, wrapped: bool) -> Self {
        Self {
            text,
            at: 0,
            wrapped,
            narrative: None,
            stray: String::new(),
            keep_stray: true,
            calls: Vec::new(),
            tools_seen: false,
            tools_end_missing: false,
            cdata_end_missing: false,
            error: None,
        }
    }

    fn run(mut self) -> Draft {
        loop {
            let Some(tag) = self.next_tag() else {
                let rest = &self.text[self.at..];
                let rest = if self.wrapped { without_partial_tag(rest) } else { rest };
                self.take_stray(self.at + rest.len());
                self.check_end();
                break;
            };
            self.take_stray(tag.start);
            self.at = tag.end;
            match (tag.name, tag.kind) {
                (Name::Response, Kind::Close) => break,
                // A second block begins. A doubled `<response><response>` still counts as the first.
                (Name::Response, _) if self.narrative.is_some() || self.tools_seen => break,
                (Name::Narrative, Kind::Open) => self.read_narrative(),
                (Name::Tools, Kind::Open) => self.read_tools(),
                (Name::Tools, Kind::Empty) => self.tools_seen = true,
                _ => {}
            }
        }
        self.into_draft()
    }

    /// The next tag with a meaning here, from `at` on.
    fn next_tag(&mut self) -> Option<Tag> {
        let mut looked = self.at;
        loop {
            let start = looked + self.text[looked..].find('<')?;
            looked = start + 1;
            if self.text[start..].starts_with(CDATA) {
                looked = self.cdata_end(start).unwrap_or(looked);
                continue;
            }
            let Some(tag) = tag_at(self.text, start) else {
                continue;
            };
            let is_meant = match tag.name {
                Name::Response => self.wrapped,
                Name::Tools if tag.kind == Kind::Open => self.wrapped || holds_calls(&self.text[tag.end..]),
                Name::Narrative | Name::Tools => true,
            };
            if is_meant {
                return Some(tag);
            }
        }
    }

    /// A missing `</response>` matters if calls may have been lost with it.
    fn check_end(&mut self) {
        let residue = self.text[self.at..].trim();
        if self.wrapped && !self.tools_seen && (self.narrative.is_none() || residue.starts_with('<')) {
            self.fail("the reply is cut: </response> is missing");
        }
    }

    fn into_draft(self) -> Draft {
        let error = self.error;
        if self.narrative.is_none() && !self.tools_seen && error.is_none() {
            let stray = without_fences(&self.stray);
            if let Some(draft) = json::parse_whole(stray) {
                return draft;
            }
        }
        Draft { narrative: self.narrative.unwrap_or(self.stray), calls: self.calls, error }
    }

    /// Keeps only the first error.
    fn fail(&mut self, error: impl Into<String>) {
        self.error.get_or_insert(error.into());
    }

    fn take_stray(&mut self, until: usize) {
        if self.keep_stray
            && let Some(text) = self.text.get(self.at..until)
        {
            push_text(&mut self.stray, text);
        }
    }

    /// The end of the CDATA section that begins at `start`, after its `]]>`.
    fn cdata_end(&mut self, start: usize) -> Option<usize> {
        if self.cdata_end_missing {
            return None;
        }
        let from = start + CDATA.len();
        let found = self.text[from..].find(CDATA_END).map(|end| from + end + CDATA_END.len());
        self.cdata_end_missing = found.is_none();
        found
    }

    fn read_narrative(&mut self) {
        let from = self.at;
        let mut looked = from;
        let mut fallback = None;
        let mut closed = None;
        while let Some(start) = self.text[looked..].find('<').map(|found| looked + found) {
            looked = start + 1;
            if self.text[start..].starts_with(CDATA) {
                match self.cdata_end(start) {
                    Some(end) => looked = end,
                    None => self.fail("a CDATA section of the narrative is not closed"),
                }
                continue;
            }
            let Some(tag) = tag_at(self.text, start) else {
                continue;
            };
            match (tag.name, tag.kind) {
                (Name::Narrative, Kind::Close) => {
                    closed = Some(tag);
                    break;
                }
                // The narrative only ends here if its own end is missing, because this tag may be quoted.
                (Name::Tools, Kind::Open | Kind::Empty) | (Name::Response, Kind::Close) => {
                    fallback = fallback.or(Some(start));
                }
                _ => {}
            }
        }
        let end = match closed {
            Some(tag) => tag.start,
            None => {
                self.fail("the reply is cut: </narrative> is missing");
                fallback.unwrap_or_else(|| from + without_partial_tag(&self.text[from..]).len())
            }
        };
        let narrative = self.narrative.get_or_insert_default();
        if !narrative.is_empty() {
            narrative.push_str("\n\n");
        }
        push_text(narrative, &self.text[from..end]);
        self.at = closed.map_or(self.text.len(), |tag| tag.end);
    }

    /// Reads a list up to `</tools>`. After the first broken list, skips the others.
    fn read_tools(&mut self) {
        self.tools_seen = true;
        let from = self.at;
        let Some(close) = self.tools_end(from) else {
            self.keep_stray = false;
            self.fail("the reply is cut: </tools> is missing");
            return;
        };
        self.at = close.end;
        if self.error.is_some() {
            return;
        }
        match section(&self.text[from..close.start]) {
            Ok(calls) => self.calls.extend(calls),
            Err(error) => match self.section_with_quoted_end(from) {
                Some((calls, end)) => {
                    self.calls.extend(calls);
                    self.at = end;
                }
                None => self.fail(error),
            },
        }
    }

    fn tools_end(&mut self, from: usize) -> Option<Tag> {
        if self.tools_end_missing {
            return None;
        }
        let found = self.text[from..]
            .match_indices("</")
            .filter_map(|(at, _)| tag_at(self.text, from + at))
            .find(|tag| tag.name == Name::Tools);
        self.tools_end_missing = found.is_none();
        found
    }

    /// Reads a list with `</tools>` inside one of its strings: the JSON itself shows where it ends.
    fn section_with_quoted_end(&mut self, from: usize) -> Option<(Vec<ProposedCall>, usize)> {
        let mut values = serde_json::Deserializer::from_str(&self.text[from..]).into_iter::<serde::de::IgnoredAny>();
        values.next()?.ok()?;
        let end = from + values.byte_offset();
        let close = self.tools_end(end)?;
        let calls = section(&self.text[from..close.start]).ok()?;
        Some((calls, close.end))
    }
}

/// Parses the content of `<tools>`.
fn section(inside: &str) -> Result<Vec<ProposedCall>, String> {
    let inside = without_fences(inside);
    if let Some(raw) = inside.strip_prefix(CDATA) {
        let raw = raw.trim_end().strip_suffix(CDATA_END).ok_or("the CDATA section of the calls is not closed")?;
        return calls::list(without_fences(raw), false);
    }
    // Valid JSON with entities in its strings, or JSON whose quotes themselves are escaped.
    calls::list(inside, true).or_else(|error| {
        if inside.contains('&') { calls::list(without_fences(&decode_entities(inside)), false) } else { Err(error) }
    })
}

/// Adds text with its entities decoded and its CDATA sections taken literally. A CDATA section without an end is plain text.
fn push_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some((before, section)) = rest.split_once(CDATA) {
        decode_entities_into(out, before);
        match section.split_once(CDATA_END) {
            Some((literal, after)) => {
                out.push_str(literal);
                rest = after;
            }
            None => {
                out.push_str(&section.replace(CDATA, ""));
                return;
            }
        }
    }
    decode_entities_into(out, rest);
}

/// Removes the rest of a cut tag at the very end, such as `</narr`.
fn without_partial_tag(text: &str) -> &str {
    let Some(at) = text.rfind('<') else {
        return text;
    };
    let tail = text[at..].to_ascii_lowercase();
    let tags = ["</narrative>", "</response>", "</tools>", "<narrative>", "<tools>"];
    let is_partial = tags.iter().any(|tag| tag.starts_with(&tail));
    if is_partial { &text[..at] } else { text }
}
