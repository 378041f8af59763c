//! Replies in `<response><narrative>…</narrative><tools>[…]</tools></response>`, as models really write them.
//!
//! Not an XML parser: between the few tags it knows, everything is text. That is what lets raw `&` and `<`, quoted tags
//! and missing ends pass. It goes from `<` to `<` once; what needs a search ahead (`]]>`, `</tools>`) is searched at most
//! once in vain.

use super::tag::{Kind, Name, Tag, tag_at, tags};
use super::text::{decode_entities, decode_entities_into, without_fences};
use super::{Draft, ProposedCall, calls, json};

const CDATA: &str = "<![CDATA[";
const CDATA_END: &str = "]]>";
/// `None` when the text holds nothing of this dialect.
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

/// Whether what follows a `<tools>` outside a response is a list rather than talk about one.
fn holds_calls(rest: &str) -> bool {
    let rest = rest.trim_start();
    ["[", "{", "```", CDATA, "</tools"].iter().any(|start| rest.starts_with(start))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Inside `<response>`; else the whole reply is looked at.
    wrapped: bool,
    narrative: Option<String>,
    /// Text outside the elements: the narrative if there is no such element.
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
                // A second block begins; but a doubled `<response><response>` is still the first.
                (Name::Response, _) if self.narrative.is_some() || self.tools_seen => break,
                (Name::Narrative, Kind::Open) => self.read_narrative(),
                (Name::Tools, Kind::Open) => self.read_tools(),
                (Name::Tools, Kind::Empty) => self.tools_seen = true,
                _ => {}
            }
        }
        self.into_draft()
    }

    /// The next tag that means something here, from `at` on.
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

    /// The first thing that is wrong is the one that is told.
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

    /// The end of the CDATA section that begins at `start`, behind its `]]>`.
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
                // Only where it ends if its own end never comes: it may be quoted.
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

    /// Reads a list up to `</tools>`. After the first that is broken, the others are only passed over.
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

    /// A list with `</tools>` inside one of its strings: the JSON itself says where it ends.
    fn section_with_quoted_end(&mut self, from: usize) -> Option<(Vec<ProposedCall>, usize)> {
        let mut values = serde_json::Deserializer::from_str(&self.text[from..]).into_iter::<serde::de::IgnoredAny>();
        values.next()?.ok()?;
        let end = from + values.byte_offset();
        let close = self.tools_end(end)?;
        let calls = section(&self.text[from..close.start]).ok()?;
        Some((calls, close.end))
    }
}

/// Reads the inside of `<tools>`.
fn section(inside: &str) -> Result<Vec<ProposedCall>, String> {
    let inside = without_fences(inside);
    if let Some(raw) = inside.strip_prefix(CDATA) {
        let raw = raw.trim_end().strip_suffix(CDATA_END).ok_or("the CDATA section of the calls is not closed")?;
        return calls::list(without_fences(raw), false);
    }
    // Sound JSON with entities in its strings, or JSON whose very quotes are escaped.
    calls::list(inside, true).or_else(|error| {
        if inside.contains('&') { calls::list(without_fences(&decode_entities(inside)), false) } else { Err(error) }
    })
}

/// Adds text with its entities decoded and its CDATA sections taken literally; a CDATA without end is plain text.
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

/// Drops what a cut left of a tag at the very end, such as `</narr`.
fn without_partial_tag(text: &str) -> &str {
    let Some(at) = text.rfind('<') else {
        return text;
    };
    let tail = text[at..].to_ascii_lowercase();
    let tags = ["</narrative>", "</response>", "</tools>", "<narrative>", "<tools>"];
    let is_partial = tags.iter().any(|tag| tag.starts_with(&tail));
    if is_partial { &text[..at] } else { text }
}
