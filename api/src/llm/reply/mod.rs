//! What a model said, taken apart: a narrative for the player and calls it proposes.
//!
//! Pure, total and linear in the length of the reply: it never panics, never fails, and never scans a stretch of
//! text more than a fixed number of times. Whatever it cannot make sense of becomes `parse_error`.
//!
//! It must never let a damaged reply act: if the list of calls is broken, cut or too long, there are no calls.
//! A broken call inside a sound list is that call's own error. It expands no entities but the five predefined and
//! numeric ones, reads no DTD, and runs nothing: names and arguments are still to be checked against a registry.
//!
//! How to add a dialect: `xml.rs` and `json.rs` each give a [`Draft`] or decline; [`parse_text`] is the order in which
//! they are asked. A new spelling of a call's fields is a word in a list in `calls.rs`.

mod calls;
mod json;
mod partial;
mod tag;
mod text;
mod xml;

use serde_json::Value;

pub use partial::Partial;
pub use text::without_thinking;

use super::client::Completion;

/// Calls accepted in one reply; a reply with more executes nothing.
pub const CALLS_PER_REPLY_MAX: usize = 32;
/// A longer narrative is cut, in bytes.
pub const NARRATIVE_BYTES_MAX: usize = 64 * 1024;
/// The longest list of calls that is read in a text reply, and the longest arguments of one native call, in bytes.
pub const CALLS_BYTES_MAX: usize = 256 * 1024;

/// One call a model proposes. Untrusted: neither the name nor the arguments are known to be valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedCall {
    /// The provider's id of the call; `None` in text replies.
    pub id: Option<String>,
    /// The tool's name as the model wrote it; empty only in native replies.
    pub name: String,
    /// An object, free of NUL characters; or what is wrong with it, said so that a model can mend it.
    pub arguments: Result<Value, String>,
    /// What the arguments were read from: the native arguments text, or the whole call of a text reply.
    pub raw: String,
}

/// A reply taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedReply {
    /// What the player gets to read; may be empty. No control characters but line breaks and tabs.
    pub narrative: String,
    /// In the model's order, duplicates kept; empty when there is a `parse_error`.
    pub calls: Vec<ProposedCall>,
    /// Why nothing of the reply is executed, for the turn's record. Holds nothing the model wrote.
    pub parse_error: Option<String>,
    /// The narrative was longer than [`NARRATIVE_BYTES_MAX`].
    pub narrative_cut: bool,
}

/// What a dialect made of a reply, before the limits that hold for all of them.
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
    format!("the reply has {count} calls, over the limit of {CALLS_PER_REPLY_MAX}")
}

/// Takes apart a reply in text mode: XML, JSON in its two forms, or plain prose, which is all narrative.
pub fn parse_text(text: &str) -> ParsedReply {
    let Some(text) = text::without_thinking(text) else {
        return Draft::broken("", "the reply ends inside the model's thinking").finish();
    };
    let inner = text::without_fences(text);
    json::parse_whole(inner)
        .or_else(|| xml::parse(text))
        .or_else(|| json::parse_damaged(inner))
        .or_else(|| json::parse_embedded(text))
        .unwrap_or_else(|| Draft { narrative: inner.to_owned(), ..Draft::default() })
        .finish()
}

/// Takes apart a reply in native mode: its text is the narrative, each call's arguments are read by themselves.
pub fn parse_native(completion: &Completion) -> ParsedReply {
    let narrative = text::without_thinking(&completion.text).unwrap_or_default().to_owned();
    if completion.tool_calls.len() > CALLS_PER_REPLY_MAX {
        return Draft::broken(narrative, too_many(completion.tool_calls.len())).finish();
    }
    let calls = completion.tool_calls.iter().map(calls::native).collect();
    Draft { narrative, calls, error: None }.finish()
}
