//! Prompts: what a model reads, in sections, within budgets, and byte for byte the same until something changes.
//!
//! - `campaigns::prompt_section` has the order of sections and their budgets, as data.
//! - [`fence`] wraps text that people wrote, so that it cannot leave its place.
//! - [`lore`] loads a scope's lore and finds keywords; [`scope`] says which scopes concern whom; [`wake`] adds lore to a turn.
//! - [`segment`] writes a section; [`assemble`] decides which must be written again; [`cache`] keeps them.
//! - [`transcript`] is the conversation so far; [`preview`] shows the whole prompt without calling a model.
//!
//! A cached section is used only if the version heads from which it was built match the database's. Heads are read before the data
//! to which they belong, so that a change in between makes a section look outdated, never current by mistake. The base of a prompt
//! must not contain times, counters or anything in the order of a hash map.

pub mod assemble;
pub mod cache;
pub mod fence;
pub mod http;
pub mod lore;
pub mod preview;
pub mod scope;
pub mod segment;
pub mod state;
pub mod transcript;
pub mod wake;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Whether a lore entry is in the prompt, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoreDecision {
    pub id: Uuid,
    pub slug: String,
    pub included: bool,
    /// A word for programs and a few words for people, such as `scope: zone port_town`.
    pub reason: String,
}
