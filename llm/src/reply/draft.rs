//! A reply, split into its parts. A dialect's reading of it is a draft until the common limits are applied.

use super::{
    call::{CALLS_PER_REPLY_MAX, ProposedCall, too_many},
    text,
};

/// The most bytes of a narrative. A longer one is cut.
pub const NARRATIVE_BYTES_MAX: usize = 64 * 1024;

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
pub(super) struct Draft {
    pub(super) narrative: String,
    pub(super) calls: Vec<ProposedCall>,
    pub(super) error: Option<String>,
}

impl Draft {
    pub(super) fn broken(narrative: impl Into<String>, error: impl Into<String>) -> Self {
        Self { narrative: narrative.into(), calls: Vec::new(), error: Some(error.into()) }
    }

    pub(super) fn finish(mut self) -> ParsedReply {
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
