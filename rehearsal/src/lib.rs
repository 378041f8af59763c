//! The rehearsal model: a small, deterministic, OpenAI-compatible endpoint on loopback.
//!
//! With it a newcomer can see a whole game without a model key, developers can build frontends for free, and tests can drive the real
//! client over real HTTP: with scripted replies, errors, delays and broken connections, and with recorded requests.
//!
//! Table of contents, in the order in which a request passes them:
//!
//! - `server`: `start`, [`Options`], the [`Rehearsal`] handle; the server's own thread.
//! - `http`: the routes. `POST /v1/chat/completions`, `GET /v1/models`, `/rehearsal/script`, `/rehearsal/requests`.
//! - `state`: what requests share; `recorder`: the last request bodies.
//! - `wire`: the request as borrowed types; `check`: rejects what a provider would reject; `error`: error answers.
//! - `prefix_cache`: provider-style prompt caching, `cached_tokens`; `prompt`: a request as canonical bytes.
//! - `script`, `reply`, `builders`, `cursor`: what to answer, as data; which step is next.
//! - `persona`: the answer if no step applies; `scene` reads the prompt, `lines` has the phrases, `schema` fills forced calls; `referee`
//!   classifies actions for the rules, `master` plays a session's turn, `planner` turns texts into commands.
//! - `completion`, `stream`, `feed`: an answer as JSON, as server-sent events, as a body with faults.
//!
//! It must never reach the network, store anything on disk, read a clock for its content, or judge game rules: the same requests in the
//! same order give the same bytes. It has no authentication, so bind it to loopback only.
//!
//! To add a kind of scripted fault, add a field to [`Reply`] with its check and builder, its effect to `feed` or `http`, and a test over
//! HTTP.

mod builders;
mod check;
mod completion;
mod cursor;
mod error;
mod feed;
mod http;
mod known;
mod lines;
mod master;
mod persona;
mod planner;
mod prefix_cache;
mod prompt;
mod recorder;
mod referee;
mod reply;
mod scene;
mod schema;
mod script;
mod server;
mod state;
mod stream;
mod wire;

pub use reply::{Reply, RetryAfter, ScriptedCall, UsageOverride};
pub use script::{Script, ScriptError, Step, Then, When};
pub use server::{Options, Rehearsal, start};
