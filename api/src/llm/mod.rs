//! The model client: one chat request to an OpenAI-compatible endpoint, and the reading of what comes back.
//!
//! What it is: [`LlmClient::complete`] sends a [`ChatRequest`] to an [`Endpoint`] within deadlines, retries,
//! a circuit breaker and a size limit, and gives a [`Completion`], whose text a [`Sink`] may hear as it comes; [`reply`] turns a completion into a
//! narrative and proposed calls. It knows nothing of tenants, turns, tools or the database.
//!
//! What it must never do:
//! - log, print or return a key, a prompt or a provider's body (an error carries at most
//!   [`error::DETAIL_CHARS_MAX`] cleaned characters of it);
//! - send a key to another host than the one it was given for: no redirects, no proxies from the environment;
//! - connect a tenant's endpoint to an address that [`guard`] did not check;
//! - panic on, or hang for, anything an endpoint sends;
//! - run inside a database transaction.
//!
//! How to add to it: a new request field is a line in `request.rs`; a new dialect of replies is a branch in
//! `decode.rs` (HTTP) or a file in `reply/` (text); a new failure is a variant of [`LlmError`] with its code and label.
//!
//! `async-openai` builds the request (its types own the URL, the headers and the one serialisation) and runs it
//! through our own HTTP service in `transport.rs`. Its default service is not used, because it retries without
//! a deadline, reads replies without a bound, and writes bodies it cannot decode into the log.

pub mod breaker;
mod client;
mod decode;
pub mod endpoint;
pub mod error;
pub mod guard;
mod http_clients;
pub mod reply;
mod request;
mod retry;
pub mod settings;
mod stream;
mod transport;
pub mod usage;

pub use breaker::{BreakerCounts, BreakerSnapshot, BreakerState};
pub use client::{Completion, LlmClient};
pub use endpoint::{Endpoint, Secret};
pub use error::{LlmError, TimeoutPhase, UnavailableKind};
pub use guard::{AllowedHost, EndpointRefused};
pub use request::{ChatRequest, Message, ReplyMode, Role, ToolChoice, UnknownReplyMode, WireToolCall};
pub use settings::LlmSettings;
pub use stream::Sink;
pub use usage::Usage;

/// Cancels calls; from `tokio-util`.
pub use tokio_util::sync::CancellationToken;
