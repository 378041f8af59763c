//! Splits a model's reply into a narrative for the player and proposed calls.
//!
//! Pure, total and linear in the length of the reply: it never panics, never fails, and never scans a part of the text more than a
//! fixed number of times. If it cannot understand the reply, it sets `parse_error`.
//!
//! A damaged reply must never act: if the list of calls is broken, cut or too long, there are no calls. A broken call in a sound
//! list is an error of that call alone. Only the five predefined and the numeric entities are expanded, no DTD is read, and nothing
//! is executed: names and arguments still have to be checked against a registry.
//!
//! To add a dialect: `xml.rs` and `json.rs` each return a [`Draft`] or None, and [`parse_text`] tries them in order. To add a
//! spelling of a call's fields, add a word to a list in `calls.rs`.

mod aside;
mod calls;
mod json;
mod mode;
mod partial;
mod tag;
mod text;
pub(crate) mod written;
mod xml;

use serde_json::Value;

pub use aside::Aside;
pub use mode::{ReplyMode, UnknownReplyMode};
pub use partial::Partial;

use super::completion::Completion;

/// The most calls in one reply. A reply with more executes none.
pub const CALLS_PER_REPLY_MAX: usize = 32;
/// The most bytes of a narrative. A longer one is cut.
pub const NARRATIVE_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a list of calls in a text reply, and of the arguments of one native call.
pub const CALLS_BYTES_MAX: usize = 256 * 1024;

/// A call that a model proposes. Untrusted: neither name nor arguments have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    /// The provider's id of the call. `None` in text replies.
    pub id: Option<String>,
    /// The tool's name as the model wrote it. Only empty in native replies.
    pub name: String,
    /// An object without NUL characters, or an error message that helps the model to correct it.
    pub arguments: Result<Value, String>,
    /// The source of the arguments: the arguments' text of a native call, or the whole call of a text reply.
    pub raw: String,
}

/// A reply, split into its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedReply {
    /// The text for the player. May be empty. Has no control characters except line breaks and tabs.
    pub narrative: String,
    /// In the model's order, with duplicates. Empty if there is a `parse_error`.
    pub calls: Vec<ProposedCall>,
    /// Why nothing in the reply is executed, for the turn's record. Never quotes the model.
    pub parse_error: Option<String>,
    /// Whether the narrative was longer than [`NARRATIVE_BYTES_MAX`].
    pub narrative_cut: bool,
}

/// A dialect's reading of a reply, before the common limits are applied.
#[derive(Debug, Default)]
struct Draft {
    narrative: String,
    calls: Vec<ProposedCall>,
    error: Option<String>,
}

impl Draft {
    fn broken(narrative: impl Into<String>, error: impl Into<String>) -> Self {
        Self { narrative: narrative.into(), calls: Vec::new(), error: Some(error.into()) }
    }

    fn finish(mut self) -> ParsedReply {
        if self.calls.len() > CALLS_PER_REPLY_MAX {
            self.error.get_or_insert_with(|| too_many(self.calls.len()));
        }
        if self.error.is_some() {
            self.calls.clear();
        }
        let (narrative, narrative_cut) = text::presentable(&self.narrative, NARRATIVE_BYTES_MAX);
        ParsedReply { narrative, calls: self.calls, parse_error: self.error, narrative_cut }
    }
}

fn too_many(count: usize) -> String {
    format!("the reply has {count} calls, more than the limit of {CALLS_PER_REPLY_MAX}")
}

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
