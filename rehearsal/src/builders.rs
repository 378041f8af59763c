//! Builds replies in Rust, for tests: `Reply::tool("NPC_memorize", json!({…})).with_text("…").delay_ms(50)`.
//!
//! There is one short method for each field of [`Reply`]. `Reply::check` finds contradictions.

use serde_json::Value;

use crate::reply::{Reply, RetryAfter, ScriptedCall, UsageOverride};

/// Kinds.
impl Reply {
    /// The persona's answer, for use with modifiers.
    #[must_use]
    pub fn persona() -> Self {
        Self::default()
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().with_text(text)
    }

    /// One tool call. A string as `arguments` is sent unchanged.
    pub fn tool(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::default().with_tool(name, arguments)
    }

    /// A refusal in place of a text.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self { refusal: Some(text.into()), ..Self::default() }
    }

    /// A text with `bytes` bytes, made while it is sent.
    #[must_use]
    pub fn repeat_bytes(bytes: u64) -> Self {
        Self { repeat_bytes: Some(bytes), ..Self::default() }
    }

    /// An HTTP status with an OpenAI-shaped error.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// A body that is sent unchanged, with status 200.
    pub fn raw_body(body: impl Into<String>) -> Self {
        Self { raw_body: Some(body.into()), ..Self::default() }
    }

    /// Closes the connection without an answer.
    #[must_use]
    pub fn close() -> Self {
        Self { close: true, ..Self::default() }
    }

    /// Never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self { hang: true, ..Self::default() }
    }
}

/// Additions and modifiers.
impl Reply {
    /// Adds or replaces the text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn with_tool(self, name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        self.with_call(ScriptedCall { name: name.into(), arguments: arguments.into(), id: None })
    }

    /// Adds a tool call with all its fields.
    #[must_use]
    pub fn with_call(mut self, call: ScriptedCall) -> Self {
        self.tool_calls.push(call);
        self
    }

    /// The body of a `status` reply: JSON, or a string that is sent as plain text.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Value>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// `Retry-After` of a `status` reply.
    #[must_use]
    pub fn retry_after(mut self, value: impl Into<RetryAfter>) -> Self {
        self.retry_after = Some(value.into());
        self
    }

    /// Breaks the connection after this many bytes of the body.
    #[must_use]
    pub fn truncate_after_bytes(mut self, bytes: u64) -> Self {
        self.truncate_after_bytes = Some(bytes);
        self
    }

    /// Waits until [`crate::Rehearsal::let_go`], before any other delay.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn delay_ms(mut self, delay: u64) -> Self {
        self.delay_ms = Some(delay);
        self
    }

    /// Waits between the headers and the body.
    #[must_use]
    pub fn body_delay_ms(mut self, delay: u64) -> Self {
        self.body_delay_ms = Some(delay);
        self
    }

    /// Waits between the pieces of the body.
    #[must_use]
    pub fn chunk_delay_ms(mut self, delay: u64) -> Self {
        self.chunk_delay_ms = Some(delay);
        self
    }

    /// Sends the body in pieces of `bytes` bytes.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Characters per stream delta.
    #[must_use]
    pub fn delta_chars(mut self, chars: usize) -> Self {
        self.delta_chars = Some(chars);
        self
    }

    /// Replaces `finish_reason`.
    #[must_use]
    pub fn finish_reason(mut self, reason: impl Into<String>) -> Self {
        self.finish_reason = Some(reason.into());
        self
    }

    /// Replaces figures of `usage`.
    #[must_use]
    pub fn usage(mut self, usage: UsageOverride) -> Self {
        self.usage = Some(usage);
        self
    }
}
