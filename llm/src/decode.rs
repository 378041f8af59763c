//! Turns the body of a 200 into a completion, and the body of an error into a sentence.
//!
//! Everything here is untrusted and may have any type. Each needed field is read by itself, so that an odd field never spoils the
//! others. A character that was cut in two is put together, and what is no character becomes U+FFFD.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::completion::WireToolCall;
use super::echo::Echo;
use super::endpoint::Secret;
use super::error::{LlmError, UnavailableKind, clean_detail};
use super::lossy::{Lossy, Piece};
use super::reply::{Aside, written};
use super::retry::{self, Failure};
use super::usage::Usage;

/// The most characters of an id, model name or finish reason.
const LABEL_CHARS_MAX: usize = 128;

/// The most calls that are read from a reply's text. `reply` rejects a reply with far fewer.
const CALLS_WRITTEN_MAX: usize = 256;

/// The useful part of a chat completion.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) tool_calls: Vec<WireToolCall>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
    pub(super) reasoning: String,
    pub(super) echo: Echo,
    /// Whether the text ended within a thought.
    pub(super) ends_in_thought: bool,
    /// Whether the text had the end of a thought that had not begun.
    pub(super) begins_in_thought: bool,
}

impl Decoded {
    /// Keeps only the speech as text. Thoughts and calls go to where they belong.
    pub(super) fn take_aside(&mut self, aside: &Aside) {
        aside.spoken().clone_into(&mut self.text);
        self.reasoning.push_str(aside.thoughts());
        self.ends_in_thought = aside.ends_in_thought();
        self.begins_in_thought = aside.has_lone_ending();
        self.tool_calls.extend(aside.calls().iter().flat_map(|taken| written::read(taken)).take(CALLS_WRITTEN_MAX));
        self.tool_calls = with_ids(std::mem::take(&mut self.tool_calls));
    }
}

/// A completion, or a chunk of one.
#[derive(Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// Where Groq tells the usage of a stream.
    #[serde(borrow)]
    x_groq: Option<&'a RawValue>,
}

impl Wire<'_> {
    /// The usage, if it is told.
    pub(super) fn usage(&self) -> Option<Value> {
        let groq =
            || self.x_groq.and_then(read::<Value>).and_then(|mut members| members.get_mut("usage").map(Value::take));
        self.usage.and_then(read::<Value>).filter(Value::is_object).or_else(groq).filter(Value::is_object)
    }
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    /// All that the model said.
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    /// What it said since the last chunk.
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<&'a RawValue>,
    /// What the model thought, in the two names that providers have for it.
    #[serde(borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning: Option<&'a RawValue>,
    /// The older format: one call, without an id.
    #[serde(borrow)]
    pub(super) function_call: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow)]
    pub(super) index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) function: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

impl WireMessage<'_> {
    /// What the model thought.
    pub(super) fn reasoning(&self) -> Piece {
        self.reasoning_content.or(self.reasoning).and_then(text).unwrap_or_default()
    }
}

/// A sentence from the body of an error, not yet cleaned, and whether it says that the quota is used up.
pub(super) fn describe_error(body: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(body);
    let Ok(mut value) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) else {
        return (text.into_owned(), false);
    };
    // Gemini's facade answers with a list of one error.
    if let Some(first) = value.as_array_mut().and_then(|errors| errors.first_mut()) {
        value = first.take();
    }
    let error = value.get("error").unwrap_or(&value);
    let out_of_quota = [error.get("type"), error.get("code")]
        .into_iter()
        .flatten()
        .any(|name| name.as_str() == Some("insufficient_quota"));
    (sentence(error), out_of_quota)
}

fn sentence(error: &Value) -> String {
    let spoken = ["message", "detail", "error"].iter().find_map(|name| error.get(name)?.as_str());
    spoken.or_else(|| error.as_str()).map_or_else(|| error.to_string(), str::to_owned)
}

/// A 200 that reports an error, with its JSON. Gateways send these, with the status of their own upstream as `code`.
pub(super) fn reported(error: &str, secret: Option<&Secret>) -> Failure {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let code = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let error = LlmError::Unavailable {
        kind: UnavailableKind::Provider,
        status: Some(200),
        detail: clean_detail(&sentence(&value), secret),
        retry_after: None,
    };
    Failure { error, transient: code.is_some_and(retry::is_transient) }
}

pub(super) fn unusable(detail: impl Into<String>) -> Failure {
    Failure::lasting(LlmError::BadReply { detail: detail.into() })
}

/// Says where the JSON is broken, but does not use serde's message, because that may quote the body.
pub(super) fn describe_syntax(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Data => "it is not a chat completion",
        _ => "it is not JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

/// A string, a list of parts, or nothing.
pub(super) fn content_text(content: &RawValue) -> Piece {
    if let Some(text) = text(content) {
        return text;
    }
    let parts: Vec<&RawValue> = read(content).unwrap_or_default();
    let mut whole = Piece::default();
    parts.into_iter().filter_map(part_text).for_each(|part| whole.extend(part));
    whole
}

fn part_text(part: &RawValue) -> Option<Piece> {
    if let Some(text) = text(part) {
        return Some(text);
    }
    let part: WirePart<'_> = read(part)?;
    let kind = part.kind.and_then(string);
    match kind.as_deref() {
        None | Some("text" | "output_text") => part.text.and_then(text),
        Some("refusal") => part.refusal.and_then(text),
        // Thinking, images and the like are not part of the reply.
        Some(_) => None,
    }
}

/// Gives every call a unique id, because results are matched to calls, and effects to turns, by id.
pub(super) fn with_ids(mut calls: Vec<WireToolCall>) -> Vec<WireToolCall> {
    let mut taken = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        let mut number = index;
        while call.id.is_empty() || taken.contains(&call.id) {
            call.id = format!("call_{number}_{}", call.id).chars().take(LABEL_CHARS_MAX).collect();
            number += 1;
        }
        taken.insert(call.id.clone());
    }
    calls
}

/// Members of an object that its endpoint may want back.
pub(super) fn echo_of(object: &RawValue, echo: &mut Echo) {
    // Most pieces of a stream have none, and each is read here.
    if !Echo::wants(object.get()) {
        return;
    }
    let Some(members) = read::<BTreeMap<Lossy, &RawValue>>(object) else { return };
    for (Lossy(name), value) in members {
        if let Some(value) = read(value).filter(|_| Echo::wants(&name)) {
            echo.add(&name, value);
        }
    }
}

/// The text of a string; the JSON of any other value.
pub(super) fn argument_text(arguments: &RawValue) -> Piece {
    text(arguments).unwrap_or_else(|| arguments.get().into())
}

pub(super) fn label(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(LABEL_CHARS_MAX).collect::<String>().trim().to_owned()
}

pub(super) fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// A JSON string that is whole, even with broken escapes; `None` for any other value.
pub(super) fn string(raw: &RawValue) -> Option<String> {
    text(raw).map(|text| text.alone())
}

/// A JSON string that may be a piece of a text; `None` for any other value.
pub(super) fn text(raw: &RawValue) -> Option<Piece> {
    if raw.get().starts_with('"') { read(raw) } else { None }
}
