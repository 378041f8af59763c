//! A reply under construction: the documents of a body, whole or in pieces, and the completion that they add up to.
//!
//! Everything here is untrusted. A document is a whole completion (`message`) or a piece of one (`delta`), whatever was asked for.
//! A `message` beside a `delta` repeats what the pieces said; it only counts if they said nothing.

use serde_json::Value;
use serde_json::value::RawValue;

use super::completion::{Completion, WireToolCall};
use super::decode::{
    Decoded, Wire, WireCall, WireChoice, WireMessage, argument_text, content_text, describe_syntax, echo_of, label,
    read, reported, string, text, unusable, with_ids,
};
use super::documents::{Balance, Documents, Part};
use super::echo::Echo;
use super::endpoint::Secret;
use super::error::{LlmError, UnavailableKind};
use super::lossy::{Piece, Seam, escaped};
use super::reply::Aside;
use super::retry::Failure;
use super::usage::Usage;

/// The most calls that are kept from one reply. `reply` rejects a reply with far fewer.
const CALLS_KEPT_MAX: usize = 256;

/// A completion under construction.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// What the pieces add up to.
    pieces: Said,
    /// The last whole message.
    message: Option<Said>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Option<Value>,
    /// The number of documents that had a part of the reply.
    documents: usize,
    /// Whether one of them was a piece.
    is_in_pieces: bool,
    is_done: bool,
    /// Why the last document had no part of the reply.
    unusable: Option<&'static str>,
}

/// How far a reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Begun,
    /// The model has ended. The endpoint may still send the usage.
    Ended,
    /// Nothing will follow.
    Done,
}

/// What a model said, in a message or in pieces.
#[derive(Debug, Default)]
struct Said {
    text: String,
    text_seam: Seam,
    reasoning: String,
    reasoning_seam: Seam,
    calls: Vec<GrowingCall>,
    echo: Echo,
}

#[derive(Debug, Default)]
struct GrowingCall {
    index: Option<u64>,
    call: WireToolCall,
    /// How far the arguments have come.
    balance: Balance,
    seam: Seam,
}

impl Growing {
    /// How far the reply has come.
    pub(super) fn progress(&self) -> Progress {
        if self.is_done {
            Progress::Done
        } else if self.finish_reason.is_some() || (self.message.is_some() && !self.is_in_pieces) {
            Progress::Ended
        } else {
            Progress::Begun
        }
    }

    /// The number of documents that had a part of the reply.
    pub(super) fn documents(&self) -> usize {
        self.documents
    }

    /// Reads a part of the body. Returns the text that it adds, which is empty for a whole reply.
    ///
    /// # Errors
    /// The endpoint reports an error, or the document cannot be read.
    pub(super) fn take(&mut self, part: &Part, secret: Option<&Secret>) -> Result<String, Failure> {
        let document = match part {
            _ if self.is_done => return Ok(String::new()),
            Part::Done => {
                self.is_done = true;
                return Ok(String::new());
            }
            Part::Document(document) => escaped(document),
        };
        if !document.starts_with('[') {
            return self.take_document(&document, secret);
        }
        // Some endpoints send their documents as a list.
        let listed: Vec<&RawValue> =
            serde_json::from_str(&document).map_err(|error| unusable(describe_syntax(&error)))?;
        let mut added = String::new();
        for document in listed {
            added.push_str(&self.take_document(document.get(), secret)?);
        }
        Ok(added)
    }

    /// Reads what stands at the end of the body. It may be cut.
    ///
    /// # Errors
    /// The errors of [`Growing::take`], unless the reply was complete without it.
    pub(super) fn take_rest(&mut self, part: &Part, secret: Option<&Secret>) -> Result<String, Failure> {
        self.take(part, secret).or_else(|failure| match failure.error {
            LlmError::BadReply { .. } if self.is_in_pieces || self.progress() != Progress::Begun => Ok(String::new()),
            _ => Err(failure),
        })
    }

    fn take_document(&mut self, document: &str, secret: Option<&Secret>) -> Result<String, Failure> {
        let wire: Wire<'_> = serde_json::from_str(document).map_err(|error| unusable(describe_syntax(&error)))?;
        if let Some(error) = wire.error {
            return Err(reported(error.get(), secret));
        }
        let object = wire.object.and_then(string);
        if object.as_deref() == Some("error") {
            return Err(reported(document, secret));
        }
        if let Some(usage) = wire.usage() {
            self.usage = Some(usage);
        }
        if self.model.is_none() {
            self.model = wire.model.and_then(string).map(label).filter(|name| !name.is_empty());
        }
        let choice = match first_choice(&wire) {
            Ok(choice) => choice,
            Err(why) => {
                self.unusable = Some(why);
                return Ok(String::new());
            }
        };
        self.documents += 1;
        if let Some(error) = choice.error {
            return Err(reported(error.get(), secret));
        }
        // An empty word and the word "null" mean the same as null.
        let reason = choice.finish_reason.and_then(string).map(label);
        match reason.filter(|reason| !reason.is_empty() && reason != "null") {
            Some(reason) if reason == "error" => {
                let detail = "the model's reply ended with an error";
                return Err(Failure::transient(LlmError::unavailable(UnavailableKind::Provider, detail)));
            }
            Some(reason) => self.finish_reason = Some(reason),
            None => {}
        }
        if let Some(message) = choice.message.filter(|message| is_object(message)) {
            let mut whole = Said::default();
            whole.add(message, true);
            self.message = Some(whole);
        }
        let delta = choice.delta.filter(|delta| is_object(delta));
        self.is_in_pieces |= delta.is_some() || object.as_deref() == Some("chat.completion.chunk");
        Ok(delta.map(|delta| self.pieces.add(delta, false)).unwrap_or_default())
    }

    /// The complete reply, once the body has ended.
    ///
    /// # Errors
    /// The body had no reply, or only a part of one.
    pub(super) fn finish(self) -> Result<Decoded, Failure> {
        let is_one_message = self.documents == 1 && self.message.is_some() && self.pieces.is_empty();
        if self.progress() == Progress::Begun && !is_one_message {
            if self.documents > 0 {
                let detail = "the stream ended before the reply did";
                return Err(Failure::transient(LlmError::unavailable(UnavailableKind::Dropped, detail)));
            }
            return Err(unusable(self.unusable.unwrap_or("it has no chat completion")));
        }
        if self.documents == 0 {
            return Err(unusable(self.unusable.unwrap_or("it has no chat completion")));
        }
        let mut said = match self.message {
            Some(message) if self.pieces.is_empty() => message,
            _ => self.pieces,
        };
        said.finish();
        Ok(Decoded {
            text: said.text,
            tool_calls: with_ids(said.calls.into_iter().map(|growing| growing.call).collect()),
            finish_reason: self.finish_reason,
            usage: Usage::of_one_call(self.usage.as_ref()),
            model: self.model,
            reasoning: said.reasoning,
            echo: said.echo,
            ..Decoded::default()
        })
    }
}

/// Reads a body that was recorded, as if it came in pieces of so many bytes (at least one).
///
/// # Errors
/// What is wrong with the body.
pub fn read_recorded(body: &[u8], piece_bytes: usize) -> Result<Completion, LlmError> {
    let (mut documents, mut reply) = (Documents::default(), Growing::default());
    for piece in body.chunks(piece_bytes.max(1)) {
        documents.push(piece);
        while let Some(part) = documents.next() {
            reply.take(&part, None).map_err(|failure| failure.error)?;
        }
    }
    if let Some(part) = documents.rest() {
        reply.take_rest(&part, None).map_err(|failure| failure.error)?;
    }
    let mut decoded = reply.finish().map_err(|failure| failure.error)?;
    let mut aside = Aside::new(true, false);
    aside.push(&decoded.text);
    aside.finish();
    decoded.take_aside(&aside);
    let Decoded { text, tool_calls, finish_reason, usage, model, reasoning, echo, .. } = decoded;
    let model = model.unwrap_or_default();
    Ok(Completion { text, tool_calls, finish_reason, usage, model, reasoning, echo, ..Completion::default() })
}

/// The choice of a document, or why it has none. In a stream that is no error: some documents have only the usage, or nothing.
fn first_choice<'a>(wire: &Wire<'a>) -> Result<WireChoice<'a>, &'static str> {
    let choices = wire.choices.ok_or("it has no choices")?;
    let choices: Vec<&'a RawValue> = read(choices).ok_or("its choices are not a list")?;
    let first = choices.first().ok_or("its choices are empty")?;
    let choice: WireChoice<'a> = read(first).ok_or("its choice is not an object")?;
    let has_part = [choice.message, choice.delta].into_iter().flatten().any(is_object);
    if has_part || choice.finish_reason.is_some() { Ok(choice) } else { Err("its choice has no message") }
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

impl Said {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// Adds a piece of a message, or all of it. Returns the text that it adds. Each element of a whole message's calls is a call.
    fn add(&mut self, message: &RawValue, is_whole: bool) -> String {
        let Some(piece) = read::<WireMessage<'_>>(message) else { return String::new() };
        echo_of(message, &mut self.echo);
        let listed: Vec<&RawValue> = match piece.tool_calls {
            Some(calls) => read(calls).unwrap_or_else(|| vec![calls]),
            None => piece.function_call.into_iter().collect(),
        };
        let mut touched = Vec::new();
        for raw in listed {
            let piece = CallPiece::read(raw);
            let known = if is_whole { None } else { self.call_of(&piece, &touched) };
            let at = match known {
                Some(at) => at,
                None if self.calls.len() >= CALLS_KEPT_MAX => continue,
                None => {
                    self.calls.push(GrowingCall { index: piece.index, ..GrowingCall::default() });
                    self.calls.len() - 1
                }
            };
            self.calls[at].add(piece, raw);
            if !touched.contains(&at) {
                touched.push(at);
            }
        }
        let thought = self.reasoning_seam.join(&piece.reasoning());
        self.reasoning.push_str(&thought);
        let mut spoken = piece.content.map(content_text).unwrap_or_default();
        if spoken.is_empty() {
            spoken = piece.refusal.and_then(text).unwrap_or_default();
        }
        let added = self.text_seam.join(&spoken);
        self.text.push_str(&added);
        added
    }

    /// Nothing follows.
    fn finish(&mut self) {
        self.text.push_str(self.text_seam.end());
        self.reasoning.push_str(self.reasoning_seam.end());
        for GrowingCall { call, seam, .. } in &mut self.calls {
            call.arguments.push_str(seam.end());
        }
    }

    /// The call that an element of a piece belongs to, or `None` if it begins one. `touched` are the calls that the piece's earlier
    /// elements belong to. A known id decides. Without one the index is a hint: some endpoints number all calls 0, or none, and some
    /// give each fragment a new id.
    fn call_of(&self, piece: &CallPiece, touched: &[usize]) -> Option<usize> {
        let known = self.calls.iter().rposition(|call| !piece.id.is_empty() && call.call.id == piece.id);
        let fits = |call: &GrowingCall| piece.index.is_none() || call.index.is_none() || call.index == piece.index;
        let at = known.or_else(|| self.calls.iter().rposition(fits))?;
        if piece.name.is_empty() {
            return Some(at);
        }
        let GrowingCall { call, balance, .. } = &self.calls[at];
        // Endpoints that send a call's name with each fragment repeat it.
        let goes_on = match known {
            Some(_) => true,
            None => {
                let is_same = piece.id.is_empty() || call.id.is_empty();
                let is_open = call.name.is_empty() || (call.name == piece.name && !balance.is_complete());
                is_same && is_open
            }
        };
        (goes_on && !touched.contains(&at)).then_some(at)
    }
}

/// An element of a piece's list of calls.
struct CallPiece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Piece,
}

impl CallPiece {
    fn read(raw: &RawValue) -> Self {
        let call: WireCall<'_> = read(raw).unwrap_or_default();
        let function: WireCall<'_> = call.function.and_then(read).unwrap_or_default();
        Self {
            index: call.index.and_then(read),
            id: call.id.and_then(string).map(label).unwrap_or_default(),
            name: function.name.or(call.name).and_then(string).map(label).unwrap_or_default(),
            arguments: function.arguments.or(call.arguments).map(argument_text).unwrap_or_default(),
        }
    }
}

impl GrowingCall {
    fn add(&mut self, piece: CallPiece, raw: &RawValue) {
        let call = &mut self.call;
        echo_of(raw, &mut call.echo);
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if !piece.name.is_empty() {
            call.name = piece.name;
        }
        let arguments = self.seam.join(&piece.arguments);
        if self.balance.is_complete() && arguments == call.arguments {
            // Some endpoints repeat the complete call at the end.
            return;
        }
        // Some endpoints begin with `{}` and then send the arguments.
        if call.arguments == "{}" && arguments.starts_with('{') {
            call.arguments.clear();
            self.balance = Balance::default();
        }
        self.balance.read(arguments.as_bytes());
        call.arguments.push_str(&arguments);
    }
}
