//! A call that a model proposes, and how many there may be.

use serde_json::Value;

/// The most calls in one reply. A reply with more executes none.
pub const CALLS_PER_REPLY_MAX: usize = 32;
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

/// Why a reply with this many calls executes none of them.
pub(super) fn too_many(count: usize) -> String {
    format!("the reply has {count} calls, more than the limit of {CALLS_PER_REPLY_MAX}")
}
