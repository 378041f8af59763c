//! Turns the body of a 200 into a completion, and the body of an error into a sentence.
//!
//! Everything here is untrusted and may have any type. Each needed field is read by itself, so that an odd field never spoils the
//! others. Broken UTF-8 and lone surrogates become U+FFFD.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::endpoint::Secret;
use super::error::{LlmError, UnavailableKind, clean_detail};
use super::retry::{self, Failure};
use super::usage::Usage;

/// The most characters of an id, model name or finish reason.
const LABEL_CHARS_MAX: usize = 128;
/// The most calls that are kept from one reply. `reply` rejects a reply with far fewer.
const CALLS_KEPT_MAX: usize = 256;

/// A call as the model wrote it. Untrusted: see [`super::reply::parse_native`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireToolCall {
    /// The provider's id. Never empty, and unique within the reply.
    pub id: String,
    /// The tool's name. Empty if the model gave none.
    pub name: String,
    /// Raw JSON text. May be anything.
    pub arguments: String,
}

/// The useful part of a chat completion.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) tool_calls: Vec<WireToolCall>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
    pub(super) reasoning: String,
}

/// A completion, or a chunk of one.
#[derive(Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    #[serde(borrow, alias = "delta")]
    pub(super) message: Option<&'a RawValue>,
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

/// Decodes the body of a 200.
pub(super) fn decode(body: &[u8], secret: Option<&Secret>) -> Result<Decoded, Failure> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(unusable("it is empty"));
    }
    let wire: Wire<'_> = serde_json::from_str(text).map_err(|error| unusable(describe_syntax(&error)))?;
    let Some(choices) = wire.choices else {
        return Err(match wire.error {
            Some(error) => reported(error, secret),
            None => unusable("it has no choices"),
        });
    };
    let choices: Vec<&RawValue> = read(choices).ok_or_else(|| unusable("its choices are not a list"))?;
    let Some(first) = choices.first() else {
        return Err(wire.error.map_or_else(|| unusable("its choices are empty"), |error| reported(error, secret)));
    };
    let choice: WireChoice<'_> = read(first).ok_or_else(|| unusable("its choice is not an object"))?;
    let message: WireMessage<'_> =
        choice.message.and_then(read).ok_or_else(|| unusable("its choice has no message"))?;
    let mut text = message.content.map(content_text).unwrap_or_default();
    if text.is_empty() {
        text = message.refusal.and_then(string).unwrap_or_default();
    }
    let usage: Option<Value> = wire.usage.and_then(read);
    Ok(Decoded {
        text,
        tool_calls: tool_calls(&message),
        finish_reason: choice.finish_reason.and_then(string).map(label),
        usage: Usage::of_one_call(usage.as_ref()),
        model: wire.model.and_then(string).map(label).filter(|name| !name.is_empty()),
        reasoning: message.reasoning(),
    })
}

impl WireMessage<'_> {
    /// What the model thought.
    pub(super) fn reasoning(&self) -> String {
        self.reasoning_content.or(self.reasoning).and_then(string).unwrap_or_default()
    }
}

/// A sentence from the body of an error, not yet cleaned, and whether it says that the quota is used up.
pub(super) fn describe_error(body: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) else {
        return (text.into_owned(), false);
    };
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

/// A 200 that reports an error. Gateways send these, with the status of their own upstream as `code`.
pub(super) fn reported(error: &RawValue, secret: Option<&Secret>) -> Failure {
    let value: Value = read(error).unwrap_or_default();
    let code = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let error = LlmError::Unavailable {
        kind: UnavailableKind::Provider,
        status: Some(200),
        detail: clean_detail(&sentence(&value), secret),
        retry_after: None,
    };
    Failure { error, transient: code.is_some_and(retry::is_transient) }
}

fn unusable(detail: impl Into<String>) -> Failure {
    Failure::lasting(LlmError::BadReply { detail: detail.into() })
}

/// Says where the JSON is broken, but does not use serde's message, because that may quote the body.
fn describe_syntax(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Data => "it is not a chat completion",
        _ => "it is not JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

/// A string, a list of parts, or nothing.
pub(super) fn content_text(content: &RawValue) -> String {
    if let Some(text) = string(content) {
        return text;
    }
    let parts: Vec<&RawValue> = read(content).unwrap_or_default();
    parts.into_iter().filter_map(part_text).collect()
}

fn part_text(part: &RawValue) -> Option<String> {
    if let Some(text) = string(part) {
        return Some(text);
    }
    let part: WirePart<'_> = read(part)?;
    let kind = part.kind.and_then(string);
    match kind.as_deref() {
        None | Some("text" | "output_text") => part.text.and_then(string),
        Some("refusal") => part.refusal.and_then(string),
        // Thinking, images and the like are not part of the reply.
        Some(_) => None,
    }
}

fn tool_calls(message: &WireMessage<'_>) -> Vec<WireToolCall> {
    let listed: Vec<&RawValue> = match message.tool_calls {
        Some(calls) => read(calls).unwrap_or_else(|| vec![calls]),
        None => message.function_call.into_iter().collect(),
    };
    let pieces = listed.into_iter().take(CALLS_KEPT_MAX).map(|raw| {
        let call: WireCall<'_> = read(raw).unwrap_or_default();
        let function: WireCall<'_> = call.function.and_then(read).unwrap_or_default();
        (
            call.id.and_then(string).map(label).unwrap_or_default(),
            function.name.or(call.name).and_then(string).map(label).unwrap_or_default(),
            function.arguments.or(call.arguments).map(argument_text).unwrap_or_default(),
        )
    });
    named(pieces)
}

/// Calls from their ids, names and arguments. Every call gets a unique id, because results are matched to calls, and effects to
/// turns, by id.
pub(super) fn named(pieces: impl Iterator<Item = (String, String, String)>) -> Vec<WireToolCall> {
    let mut taken = HashSet::new();
    let calls = pieces.enumerate().map(|(index, (mut id, name, arguments))| {
        if id.is_empty() || taken.contains(&id) {
            id = format!("call_{index}_{}", label(id)).chars().take(LABEL_CHARS_MAX).collect();
        }
        taken.insert(id.clone());
        WireToolCall { id, name, arguments }
    });
    calls.collect()
}

/// The text of a string; the JSON of any other value.
pub(super) fn argument_text(arguments: &RawValue) -> String {
    string(arguments).unwrap_or_else(|| arguments.get().to_owned())
}

pub(super) fn label(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(LABEL_CHARS_MAX).collect::<String>().trim().to_owned()
}

pub(super) fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// A JSON string, even with broken escapes; `None` for any other value.
pub(super) fn string(raw: &RawValue) -> Option<String> {
    if !raw.get().starts_with('"') {
        return None;
    }
    read::<Lossy>(raw).map(|text| text.0)
}

/// A string read as bytes, so that lone surrogates are allowed. They become U+FFFD.
pub(super) struct Lossy(pub(super) String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Lossy, E> {
                Ok(Lossy(text.to_owned()))
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
