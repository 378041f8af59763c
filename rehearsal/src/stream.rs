//! A completion as server-sent events: `chat.completion.chunk` objects and `[DONE]`.
//!
//! Text and tool arguments come in small deltas, as from real models. Events are joined into one write unless the
//! script wants pauses between them. This module must never split a character; only `chunk_bytes` of the feed does
//! that.

use bytes::Bytes;

use crate::completion::{Call, Completion, Envelope, Text, push_json};
use crate::feed::Segment;

/// A delta of a few words ends at the first space after this many bytes.
const DELTA_BYTES: usize = 24;

/// How to divide a stream.
pub(crate) struct Cut {
    pub(crate) include_usage: bool,
    /// Characters per delta; `None` for a few words.
    pub(crate) delta_chars: Option<usize>,
    /// Whether each event is a segment of its own.
    pub(crate) separate: bool,
}

struct Events<'a> {
    cut: &'a Cut,
    head: Vec<u8>,
    buffer: Vec<u8>,
    segments: Vec<Segment>,
}

/// The events of an answer.
pub(crate) fn events(completion: &Completion, envelope: &Envelope, cut: &Cut) -> Vec<Segment> {
    let mut events = Events::new(envelope, cut);
    events.delta(b"{\"role\":\"assistant\",\"content\":\"\"}");
    match &completion.text {
        Text::None => {}
        Text::Whole(text) => events.texts("content", text),
        Text::Repeated { unit, times, rest } => {
            events.repeat(unit, *times);
            events.texts("content", rest);
        }
    }
    if let Some(refusal) = &completion.refusal {
        events.texts("refusal", refusal);
    }
    for (index, call) in completion.calls.iter().enumerate() {
        events.call(index, call, envelope);
    }
    let mut reason = Vec::new();
    push_json(&mut reason, completion.finish_reason());
    events.event(b"{}", &reason);
    if cut.include_usage {
        events.usage(completion, envelope);
    }
    events.buffer.extend_from_slice(b"data: [DONE]\n\n");
    events.flush();
    events.segments
}

impl<'a> Events<'a> {
    fn new(envelope: &Envelope, cut: &'a Cut) -> Self {
        let mut head = Vec::with_capacity(160);
        head.extend_from_slice(b"data: {\"id\":");
        push_json(&mut head, &envelope.id());
        head.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":");
        push_json(&mut head, &envelope.model);
        head.extend_from_slice(b",\"system_fingerprint\":\"rehearsal\",\"choices\":[");
        Self { cut, head, buffer: Vec::with_capacity(4_096), segments: Vec::new() }
    }

    /// One event with a delta.
    fn delta(&mut self, delta: &[u8]) {
        self.event(delta, b"null");
    }

    fn event(&mut self, delta: &[u8], finish_reason: &[u8]) {
        self.buffer.extend_from_slice(&self.head);
        self.buffer.extend_from_slice(b"{\"index\":0,\"delta\":");
        self.buffer.extend_from_slice(delta);
        self.buffer.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":");
        self.buffer.extend_from_slice(finish_reason);
        self.buffer.extend_from_slice(b"}]");
        if self.cut.include_usage {
            self.buffer.extend_from_slice(b",\"usage\":null");
        }
        self.buffer.extend_from_slice(b"}\n\n");
        if self.cut.separate {
            self.flush();
        }
    }

    /// The final event with the usage figures and without choices.
    fn usage(&mut self, completion: &Completion, envelope: &Envelope) {
        self.buffer.extend_from_slice(&self.head);
        self.buffer.extend_from_slice(b"],\"usage\":");
        push_json(&mut self.buffer, &completion.usage(envelope));
        self.buffer.extend_from_slice(b"}\n\n");
        if self.cut.separate {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            self.segments.push(Segment::once(buffer));
        }
    }

    /// A text in deltas of the member `field`.
    fn texts(&mut self, field: &str, text: &str) {
        for piece in pieces(text, self.cut.delta_chars) {
            self.delta(&text_delta(field, piece));
        }
    }

    /// One event of a repeated text, sent many times.
    fn repeat(&mut self, unit: &str, times: usize) {
        self.flush();
        self.delta(&text_delta("content", unit));
        let event = match self.segments.pop() {
            Some(segment) if self.cut.separate => segment.unit,
            other => {
                self.segments.extend(other);
                Bytes::from(std::mem::take(&mut self.buffer))
            }
        };
        self.segments.push(Segment { unit: event, times });
    }

    /// A tool call: its name first, then its arguments in pieces.
    fn call(&mut self, index: usize, call: &Call, envelope: &Envelope) {
        let mut delta = format!("{{\"tool_calls\":[{{\"index\":{index},\"id\":").into_bytes();
        push_json(&mut delta, &call.id(envelope, index));
        delta.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        push_json(&mut delta, &call.name);
        delta.extend_from_slice(b",\"arguments\":\"\"}}]}");
        self.delta(&delta);
        for piece in pieces(&call.arguments, self.cut.delta_chars) {
            let head = format!("{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":");
            let mut delta = head.into_bytes();
            push_json(&mut delta, piece);
            delta.extend_from_slice(b"}}]}");
            self.delta(&delta);
        }
    }
}

fn text_delta(field: &str, piece: &str) -> Vec<u8> {
    let mut delta = format!("{{\"{field}\":").into_bytes();
    push_json(&mut delta, piece);
    delta.push(b'}');
    delta
}

/// Divides a text into deltas of this many characters, or of a few words.
fn pieces(mut text: &str, delta_chars: Option<usize>) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let end = match delta_chars {
            Some(chars) => text.char_indices().nth(chars.max(1)).map(|(at, _)| at),
            None => words_end(text),
        };
        let (piece, rest) = text.split_at(end.unwrap_or(text.len()));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

fn words_end(text: &str) -> Option<usize> {
    let start = text.ceil_char_boundary(DELTA_BYTES);
    let space = text.get(start..)?.find(' ')?;
    Some(start + space + 1)
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_join_to_the_text() {
        let text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.";
        for chars in [None, Some(1), Some(5), Some(500)] {
            assert_eq!(pieces(text, chars).concat(), text);
        }
        assert_eq!(pieces("abc", Some(1)), ["a", "b", "c"]);
    }
}
