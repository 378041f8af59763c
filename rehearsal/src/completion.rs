//! An assistant's answer, and the JSON of a complete (not streamed) completion.
//!
//! The code writes the JSON around the text by hand, because a text of many megabytes is repeated while it is sent and
//! never built in memory. This module must never use a clock: `created` is 0, and ids come from the prompt.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

use crate::feed::Segment;
use crate::prefix_cache::TOKEN_BYTES;
use crate::reply::UsageOverride;

/// The minimum size in bytes of the unit that a repeated text is made of.
const UNIT_BYTES_MIN: usize = 8 * 1_024;
/// The phrase to repeat if the script has none.
const PHRASE: &str = "The road winds on through the old forest, and the tale goes on with it. ";

/// The assistant's text.
pub(crate) enum Text {
    None,
    Whole(String),
    /// `unit`, repeated `times` times, and then `rest`.
    Repeated {
        unit: String,
        times: usize,
        rest: String,
    },
}

/// A tool call. `arguments` is what the model wrote, JSON or not.
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// The assistant's answer.
pub(crate) struct Completion {
    pub(crate) text: Text,
    pub(crate) calls: Vec<Call>,
    pub(crate) refusal: Option<String>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) usage: UsageOverride,
}

/// What an answer says about its request.
pub(crate) struct Envelope {
    pub(crate) fingerprint: u64,
    /// How often the same prompt came before.
    pub(crate) times: u64,
    pub(crate) model: String,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
}

/// A call in the API's form.
#[derive(Serialize)]
struct CallBody<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: FunctionBody<'a>,
}

#[derive(Serialize)]
struct FunctionBody<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The `usage` member.
#[derive(Serialize)]
pub(crate) struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokensDetails,
}

#[derive(Serialize)]
struct PromptTokensDetails {
    cached_tokens: u64,
}

impl Text {
    /// A text of exactly `bytes` bytes that repeats a phrase.
    pub(crate) fn repeated(phrase: Option<&str>, bytes: u64) -> Self {
        let phrase = phrase.filter(|phrase| !phrase.is_empty()).unwrap_or(PHRASE);
        let unit = phrase.repeat(UNIT_BYTES_MIN.div_ceil(phrase.len()));
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let left = bytes % unit.len();
        let mut rest = unit.get(..unit.floor_char_boundary(left)).unwrap_or_default().to_owned();
        rest.extend(std::iter::repeat_n('.', left - rest.len()));
        Self::Repeated { times: bytes / unit.len(), unit, rest }
    }

    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Whole(text) => text.len(),
            Self::Repeated { unit, times, rest } => unit.len() * times + rest.len(),
        }
    }
}

impl Completion {
    /// A plain answer.
    pub(crate) fn new(text: Text, calls: Vec<Call>) -> Self {
        Self { text, calls, refusal: None, finish_reason: None, usage: UsageOverride::default() }
    }

    /// `finish_reason`, unless the script says otherwise.
    pub(crate) fn finish_reason(&self) -> &str {
        let usual = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.finish_reason.as_deref().unwrap_or(usual)
    }

    /// The usage figures of this answer.
    pub(crate) fn usage(&self, envelope: &Envelope) -> Usage {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        let refusal = self.refusal.as_ref().map_or(0, String::len);
        let written = (self.text.len() + refusal + calls.sum::<usize>()).div_ceil(TOKEN_BYTES);
        let prompt_tokens = self.usage.prompt_tokens.unwrap_or(envelope.prompt_tokens);
        let completion_tokens = self.usage.completion_tokens.unwrap_or(written as u64);
        Usage {
            prompt_tokens,
            completion_tokens,
            total_tokens: self.usage.total_tokens.unwrap_or(prompt_tokens.saturating_add(completion_tokens)),
            prompt_tokens_details: PromptTokensDetails {
                cached_tokens: self.usage.cached_tokens.unwrap_or(envelope.cached_tokens),
            },
        }
    }

    /// The whole answer as JSON.
    pub(crate) fn json(&self, envelope: &Envelope) -> Vec<Segment> {
        let mut out = Vec::with_capacity(1_024);
        out.extend_from_slice(b"{\"id\":");
        push_json(&mut out, &envelope.id());
        out.extend_from_slice(b",\"object\":\"chat.completion\",\"created\":0,\"model\":");
        push_json(&mut out, &envelope.model);
        out.extend_from_slice(b",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
        let mut segments = Vec::new();
        match &self.text {
            Text::None => out.extend_from_slice(b"null"),
            Text::Whole(text) => push_json(&mut out, text),
            Text::Repeated { unit, times, rest } => {
                out.push(b'"');
                segments.push(Segment::once(std::mem::take(&mut out)));
                segments.push(Segment { unit: Bytes::from(inside_json(unit)), times: *times });
                out.extend_from_slice(&inside_json(rest));
                out.push(b'"');
            }
        }
        self.push_tail(&mut out, envelope);
        segments.push(Segment::once(out));
        segments
    }

    fn push_tail(&self, out: &mut Vec<u8>, envelope: &Envelope) {
        out.extend_from_slice(b",\"refusal\":");
        push_json(out, &self.refusal);
        if !self.calls.is_empty() {
            let calls: Vec<_> = self
                .calls
                .iter()
                .enumerate()
                .map(|(index, call)| CallBody {
                    id: call.id(envelope, index),
                    r#type: "function",
                    function: FunctionBody { name: &call.name, arguments: &call.arguments },
                })
                .collect();
            out.extend_from_slice(b",\"tool_calls\":");
            push_json(out, &calls);
        }
        out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":");
        push_json(out, self.finish_reason());
        out.extend_from_slice(b"}],\"usage\":");
        push_json(out, &self.usage(envelope));
        out.extend_from_slice(b",\"system_fingerprint\":\"rehearsal\"}");
    }
}

impl Call {
    /// The id of the call at `index` of an answer.
    pub(crate) fn id(&self, envelope: &Envelope, index: usize) -> Cow<'_, str> {
        match &self.id {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(format!("call_{:016x}{index}", envelope.fingerprint)),
        }
    }
}

impl Envelope {
    /// The id of the completion.
    pub(crate) fn id(&self) -> String {
        format!("chatcmpl-{:016x}", self.fingerprint)
    }
}

/// Appends a value as JSON. A value that cannot be written becomes `null`; ours all can.
pub(crate) fn push_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// A text as it appears between the quotes of a JSON string.
fn inside_json(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_json(&mut out, text);
    out.pop();
    out.drain(..1);
    out
}
