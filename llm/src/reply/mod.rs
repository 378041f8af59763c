//! Splits a model's reply into a narrative for the player and proposed calls.
//!
//! Pure, total and linear in the length of the reply: it never panics, never fails, and never scans a part of the text more than a
//! fixed number of times. If it cannot understand the reply, it sets `parse_error`.
//!
//! A damaged reply must never act: if the list of calls is broken, cut or too long, there are no calls. A broken call in a sound
//! list is an error of that call alone. Only the five predefined and the numeric entities are expanded, no DTD is read, and nothing
//! is executed: names and arguments still have to be checked against a registry.
//!
//! To add a dialect: `xml.rs` and `json.rs` each return a `Draft` or None, and [`parse_text`] tries them in order. To add a
//! spelling of a call's fields, add a word to a list in `calls.rs`.

mod aside;
mod call;
mod calls;
mod draft;
mod json;
mod mode;
mod partial;
mod tag;
mod text;
pub(crate) mod written;
mod xml;

pub use aside::Aside;
pub use call::{CALLS_BYTES_MAX, CALLS_PER_REPLY_MAX, ProposedCall};
pub use draft::{NARRATIVE_BYTES_MAX, ParsedReply};
pub use mode::{ReplyMode, UnknownReplyMode};
pub use partial::Partial;

use self::{call::too_many, draft::Draft};
use super::completion::Completion;

/// Parses a reply in text mode: XML, JSON in its two forms, or plain prose, which is all narrative.
pub fn parse_text(text: &str) -> ParsedReply {
    let text = text.trim();
    let inner = text::without_fences(text);
    json::parse_whole(inner)
        .or_else(|| xml::parse(text))
        .or_else(|| json::parse_damaged(inner))
        .or_else(|| json::parse_embedded(text))
        .unwrap_or_else(|| Draft { narrative: inner.to_owned(), ..Draft::default() })
        .finish()
}

/// Parses a reply in native mode: its text is the narrative, and each call's arguments are parsed by themselves.
pub fn parse_native(completion: &Completion) -> ParsedReply {
    let narrative = completion.text.clone();
    if completion.tool_calls.len() > CALLS_PER_REPLY_MAX {
        return Draft::broken(narrative, too_many(completion.tool_calls.len())).finish();
    }
    let calls = completion.tool_calls.iter().map(calls::native).collect();
    Draft { narrative, calls, error: None }.finish()
}
