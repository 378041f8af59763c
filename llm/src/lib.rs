//! The model client: sends one chat request to an OpenAI-compatible endpoint and reads the reply.
//!
//! [`LlmClient::complete`] sends a [`ChatRequest`] to an [`Endpoint`] within deadlines, retries, a circuit breaker and a size
//! limit. It returns a [`Completion`]; a [`Sink`] may receive its text as it comes. [`reply`] splits a completion into a narrative
//! and proposed calls. This module knows nothing about tenants, turns, tools or the database.
//!
//! It must never:
//! - log, print or return a key, a prompt or a provider's body (an error contains at most [`error::DETAIL_CHARS_MAX`] cleaned
//!   characters of it);
//! - send a key to a host that it was not given for: no redirects, no proxies from the environment;
//! - connect a tenant's endpoint to an address that [`guard`] did not check;
//! - panic or hang, whatever an endpoint sends;
//! - run inside a database transaction.
//!
//! To add a request field, add a line in `request.rs`. To add a dialect of replies, add a branch in `decode.rs` (HTTP) or a file in
//! `reply/` (text). To add a failure, add a variant of [`LlmError`] with its code and label.
//!
//! `async-openai` builds the request (its types own the URL, the headers and the single serialisation) and runs it through our own
//! HTTP service in `transport.rs`. We do not use its default service, because that retries without a deadline, reads replies
//! without a limit, and logs bodies that it cannot decode.

pub mod breaker;
mod client;
mod completion;
mod decode;
mod documents;
mod echo;
pub mod endpoint;
pub mod error;
mod growing;
pub mod guard;
mod habits;
mod http_clients;
mod listing;
mod lossy;
pub mod parameters;
pub mod reply;
mod request;
mod retry;
pub mod settings;
mod sink;
mod transport;
pub mod usage;
mod window;

pub use breaker::{BreakerCounts, BreakerSnapshot, BreakerState};
pub use client::LlmClient;
pub use completion::{Completion, Ending, WireToolCall};
pub use echo::Echo;
pub use endpoint::{CallOptions, Endpoint, Secret};
pub use error::{LlmError, TimeoutPhase, UnavailableKind};
pub use growing::read_recorded;
pub use guard::{AllowedHost, EndpointRefused};
pub use parameters::{OutputLimit, Parameters, ReasoningEffort};
pub use reply::{ReplyMode, UnknownReplyMode};
pub use request::{ChatRequest, Message, Role, ToolChoice};
pub use settings::LlmSettings;
pub use sink::Sink;
pub use usage::Usage;
pub use window::Window;

/// Cancels calls. From `tokio-util`.
pub use tokio_util::sync::CancellationToken;
