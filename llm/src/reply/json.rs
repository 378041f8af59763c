//! Replies as one JSON object: `{narrative, tool_calls}`, owners' `{proposed_actions}`, a bare call or list.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::lossy::Lossy;
use super::calls;
use super::draft::Draft;
use super::text::{with_escaped_controls, without_fences};

/// How many places in a prose reply are searched for an object.
const CANDIDATES_MAX: usize = 8;
/// The most whitespace between `{` and the first key when searching for an object.
const GAP_BYTES_MAX: usize = 64;
const KEYS: [&str; 7] = [
    "\"narrative\"",
    "\"tool_calls\"",
    "\"tools\"",
    "\"proposed_actions\"",
    "\"response\"",
    "\"owner_id\"",
    "\"tool_name\"",
];
const BROKEN: &str = "the JSON of the reply is cut or broken";

/// The unparsed fields of a reply. Of duplicates the last one counts.
#[derive(Default)]
struct Fields<'a> {
    narrative: Option<&'a RawValue>,
    /// Used if there is no narrative.
    spoken: Option<&'a RawValue>,
    lists: Vec<&'a RawValue>,
    wrapped: Option<&'a RawValue>,
    is_call: bool,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(Lossy(key)) = map.next_key()? {
                    match key.as_str() {
                        "narrative" | "narration" => fields.narrative = Some(map.next_value()?),
                        "text" | "message" | "content" => fields.spoken = Some(map.next_value()?),
                        "tool_calls" | "tools" | "proposed_actions" | "actions" => fields.lists.push(map.next_value()?),
                        "response" | "reply" => fields.wrapped = Some(map.next_value()?),
                        other => {
                            fields.is_call |= matches!(other, "tool_name" | "parameters" | "arguments");
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reading)
    }
}

/// A reply that begins with an object or a list of calls. Text after the first value is ignored.
pub(super) fn parse_whole(text: &str) -> Option<Draft> {
    match text.as_bytes().first()? {
        b'{' => parse_object(text),
        b'[' => {
            let first = first_value(text)?;
            let looks_like_calls =
                KEYS.iter().chain(&["\"name\"", "\"function\""]).any(|key| first.get().contains(key));
            let calls = calls::list(first.get(), false).ok().filter(|calls| looks_like_calls && !calls.is_empty())?;
            Some(Draft { calls, ..Draft::default() })
        }
        _ => None,
    }
}

/// An object somewhere within prose.
pub(super) fn parse_embedded(text: &str) -> Option<Draft> {
    let mut damaged = None;
    for at in candidates(text).take(CANDIDATES_MAX) {
        if let Some(draft) = parse_object(&text[at..]) {
            return Some(draft);
        }
        damaged = damaged.or(Some(at));
    }
    parse_damaged(&text[damaged?..])
}

/// An object that cannot be parsed. Its narrative is shown as far as it goes, and nothing else is used.
pub(super) fn parse_damaged(text: &str) -> Option<Draft> {
    if !text.starts_with('{') || !KEYS.iter().any(|key| text.contains(key)) {
        return None;
    }
    // Players should not see a sound object without known fields either.
    let narrative = text.split_once("\"narrative\"").and_then(|(_, rest)| {
        let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        Some(unfinished_string(rest))
    });
    Some(Draft::broken(narrative.unwrap_or_default(), BROKEN))
}

/// The positions of objects whose first key is one of a reply.
fn candidates(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('{').map(|(at, _)| at).filter(|at| {
        let rest = &text.as_bytes()[at + 1..];
        let gap = rest.iter().take(GAP_BYTES_MAX).take_while(|byte| byte.is_ascii_whitespace()).count();
        KEYS.iter().any(|key| rest[gap..].starts_with(key.as_bytes()))
    })
}

fn first_value(text: &str) -> Option<&RawValue> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

fn parse_object(text: &str) -> Option<Draft> {
    match first_value(text) {
        Some(value) => read(value.get(), true),
        None => read(first_value(&with_escaped_controls(text)?)?.get(), true),
    }
}

fn read(object: &str, may_be_wrapped: bool) -> Option<Draft> {
    let fields: Fields<'_> = serde_json::from_str(object).ok()?;
    if let Some(inner) = fields.wrapped
        && may_be_wrapped
        && fields.narrative.is_none()
        && inner.get().starts_with('{')
    {
        return read(inner.get(), false);
    }
    if fields.narrative.is_none() && fields.lists.is_empty() {
        if fields.is_call {
            return Some(match calls::list(object, false) {
                Ok(calls) => Draft { calls, ..Draft::default() },
                Err(error) => Draft::broken("", error),
            });
        }
        fields.spoken?;
    }
    let narrative = match fields.narrative.or(fields.spoken).map(narrative_text) {
        Some(None) => return Some(Draft::broken("", "the narrative is not text")),
        Some(Some(text)) => text,
        None => String::new(),
    };
    let mut calls = Vec::new();
    for list in fields.lists {
        match calls::list(list.get(), false) {
            Ok(more) => calls.extend(more),
            Err(error) => return Some(Draft::broken(narrative, error)),
        }
    }
    Some(Draft { narrative, calls, error: None })
}

/// The narrative from a string, `null`, or a list of strings as paragraphs.
fn narrative_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str::<Lossy>(value.get()).ok().map(|text| text.0),
        b'n' => Some(String::new()),
        b'[' => {
            let paragraphs: Vec<Lossy> = serde_json::from_str(value.get()).ok()?;
            Some(paragraphs.into_iter().map(|text| text.0).collect::<Vec<_>>().join("\n\n"))
        }
        _ => None,
    }
}

/// The text of a JSON string from after its opening quote to its closing one, or to the place where the reply was cut.
fn unfinished_string(text: &str) -> String {
    let mut end = text.len();
    let mut escape_from = None;
    for (at, byte) in text.bytes().enumerate() {
        match (escape_from, byte) {
            (Some(_), _) => escape_from = None,
            (None, b'\\') => escape_from = Some(at),
            (None, b'"') => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let body = &text[..escape_from.unwrap_or(end)];
    // The cut may also leave `\u12`; at most that much is dropped.
    let quoted = |body: &str| format!("\"{body}\"");
    let read = |json: &str| serde_json::from_str::<Lossy>(json).ok().map(|text| text.0);
    let mended = quoted(body);
    let mended = with_escaped_controls(&mended).unwrap_or(mended);
    let cut_escape = || {
        let from = mended.char_indices().rev().take(8).find(|(_, c)| *c == '\\')?.0;
        read(&format!("{}\"", &mended[..from]))
    };
    read(&mended).or_else(cut_escape).unwrap_or_else(|| without_fences(body).to_owned())
}
