//! A streamed reply: the lines of an event stream, and the completion that its chunks add up to.
//!
//! Everything here is untrusted. Each byte is searched only once, however slowly a line comes. Everything in a chunk except text
//! and calls is ignored.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::decode::{
    Decoded, Wire, WireCall, WireChoice, WireMessage, content_text, label, named, read, reported, string,
};
use super::endpoint::Secret;
use super::error::{LlmError, UnavailableKind};
use super::retry::Failure;
use super::usage::Usage;

/// The most calls that are kept from one reply, as in `decode.rs`.
const CALLS_KEPT_MAX: usize = 256;

/// Receives a reply's text while the model writes it.
#[derive(Clone)]
pub struct Sink {
    hear: Arc<dyn Fn(&str) + Send + Sync>,
    has_told: Arc<AtomicBool>,
}

impl Sink {
    /// Calls `hear` with each piece of text, in order. It must not block.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { hear: Arc::new(hear), has_told: Arc::default() }
    }

    /// Whether any text was passed on. It cannot be withdrawn.
    #[must_use]
    pub fn has_told(&self) -> bool {
        self.has_told.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self, text: &str) {
        self.has_told.store(true, Ordering::Relaxed);
        (self.hear)(text);
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// Splits the bytes of an event stream into the data of its events. Each `data:` line is one event, since no provider breaks its
/// JSON.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// The position up to which no line end was found.
    searched: usize,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next complete event line.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let mut begin = 0;
        while let Some(at) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
            let end = self.searched + at;
            self.searched = end + 1;
            let line = self.buffer[begin..end].strip_suffix(b"\r").unwrap_or(&self.buffer[begin..end]);
            if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.trim_ascii().to_vec();
                self.forget();
                return Some(data);
            }
            begin = end + 1;
        }
        self.searched = self.buffer.len();
        self.buffer.drain(..begin);
        self.searched -= begin;
        None
    }

    fn forget(&mut self) {
        self.buffer.drain(..self.searched);
        self.searched = 0;
    }
}

/// A completion under construction.
#[derive(Debug, Default)]
pub(super) struct Growing {
    whole: Decoded,
    calls: Vec<PartialCall>,
    usage: Option<Value>,
    done: bool,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct WireIndex<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
}

impl Growing {
    /// Reads the data of one event and returns the text that it adds.
    pub(super) fn take(&mut self, data: &[u8], secret: Option<&Secret>) -> Result<String, Failure> {
        if data == b"[DONE]" {
            self.done = true;
        }
        if self.done || data.is_empty() {
            return Ok(String::new());
        }
        let text = String::from_utf8_lossy(data);
        let Ok(chunk) = serde_json::from_str::<Wire<'_>>(&text) else {
            return Err(Failure::lasting(LlmError::BadReply {
                detail: "an event of its stream is not JSON".to_owned(),
            }));
        };
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            return Err(reported(error, secret));
        }
        if let Some(usage) = chunk.usage.and_then(read::<Value>).filter(Value::is_object) {
            self.usage = Some(usage);
        }
        if self.whole.model.is_none() {
            self.whole.model = chunk.model.and_then(string).map(label).filter(|name| !name.is_empty());
        }
        let choices: Vec<&RawValue> = chunk.choices.and_then(read).unwrap_or_default();
        let Some(choice) = choices.first().and_then(|choice| read::<WireChoice<'_>>(choice)) else {
            return Ok(String::new());
        };
        if let Some(reason) = choice.finish_reason.and_then(string) {
            self.whole.finish_reason = Some(label(reason));
        }
        let Some(delta) = choice.message.and_then(read::<WireMessage<'_>>) else { return Ok(String::new()) };
        self.take_calls(&delta);
        self.whole.reasoning.push_str(&delta.reasoning());
        let mut added = delta.content.map(content_text).unwrap_or_default();
        if added.is_empty() {
            added = delta.refusal.and_then(string).unwrap_or_default();
        }
        self.whole.text.push_str(&added);
        Ok(added)
    }

    fn take_calls(&mut self, delta: &WireMessage<'_>) {
        let listed: Vec<&RawValue> = match delta.tool_calls {
            Some(calls) => read(calls).unwrap_or_else(|| vec![calls]),
            None => delta.function_call.into_iter().collect(),
        };
        for raw in listed {
            let call: WireCall<'_> = read(raw).unwrap_or_default();
            let function: WireCall<'_> = call.function.and_then(read).unwrap_or_default();
            let index = read::<WireIndex<'_>>(raw).and_then(|wire| wire.index).and_then(read::<u64>);
            let id = call.id.and_then(string).map(label).filter(|id| !id.is_empty());
            let Some(growing) = self.call(index, id.as_deref()) else { continue };
            if let Some(id) = id {
                growing.id = id;
            }
            // A name comes complete, with the first piece.
            if let Some(name) = function.name.or(call.name).and_then(string).map(label).filter(|name| !name.is_empty())
            {
                growing.name = name;
            }
            if let Some(piece) = function.arguments.or(call.arguments) {
                growing.arguments.push_str(&super::decode::argument_text(piece));
            }
        }
    }

    /// The call that a piece belongs to: by its index, or else by its id, or else the last call.
    fn call(&mut self, index: Option<u64>, id: Option<&str>) -> Option<&mut PartialCall> {
        let known = match (index, id) {
            (Some(_), _) => self.calls.iter().position(|call| call.index == index),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        match known {
            Some(at) => self.calls.get_mut(at),
            None if self.calls.len() >= CALLS_KEPT_MAX => None,
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.last_mut()
            }
        }
    }

    /// Whether the stream said that it is complete.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The complete reply, once the stream has ended.
    pub(super) fn finish(self) -> Result<Decoded, Failure> {
        if !self.done && self.whole.finish_reason.is_none() {
            let error = LlmError::unavailable(UnavailableKind::Dropped, "the stream ended before the reply did");
            return Err(Failure::transient(error));
        }
        let calls = self.calls.into_iter().map(|call| (call.id, call.name, call.arguments));
        Ok(Decoded { tool_calls: named(calls), usage: Usage::of_one_call(self.usage.as_ref()), ..self.whole })
    }
}
