//! Prompts: what a model reads, in sections, within budgets, and byte for byte the same until something changes.
//!
//! - `campaigns::prompt_section` has the order of sections and their budgets, as data; `campaigns::prompt_template` a campaign's own.
//! - [`fence`] wraps text that people wrote, so that it cannot leave its place.
//! - [`here`] says which creatures and items are here.
//! - [`lore`] loads a scope's lore and finds keywords; [`scope`] says which scopes concern whom; [`wake`] adds lore to a turn.
//! - [`cast`] is who takes part in a conversation.
//! - [`macros`] fills in the macros of what people wrote; [`reminder`] puts what is to be read late into the conversation.
//! - [`names`] turns the names in a request into ids, once; [`key`] is what a prompt is known by.
//! - [`remembered`] chooses among the memories of [`crate::corpora`] for a prompt, [`recall_report`] says why, and [`search`] finds some for people.
//! - [`segment`] writes a section; [`base_prompt`] is all sections together. [`assemble`] decides what must be written again, and
//!   `build` writes it; `heads` and [`fresh_lore`] say what is up to date, [`cache`] keeps it.
//! - [`turn`] writes a turn's own message; [`transcript`] is the conversation so far; [`shown`] is the whole prompt of a turn, and [`preview`]
//!   shows it without calling a model.
//! - [`fit`] makes a prompt fit the model's context: what gives way, in which order; [`pieces`] are what a text can do without; [`size`] counts
//!   the tokens of a request.
//!
//! A cached section is used only if the version heads from which it was built match the database's. Heads are read before the data
//! to which they belong, so that a change in between makes a section look outdated, never current by mistake. The base of a prompt
//! must not contain times, counters or anything in the order of a hash map.

pub mod assemble;
pub mod base_prompt;
mod build;
pub mod cache;
pub mod cast;
pub mod fence;
pub mod fit;
pub mod fresh_lore;
pub mod hash;
mod heads;
pub mod here;
pub mod http;
pub mod key;
pub mod lore;
pub mod macros;
pub mod names;
pub mod pieces;
pub mod preview;
pub mod reason;
pub mod recall_report;
pub mod remembered;
pub mod reminder;
pub mod scope;
pub mod search;
pub mod segment;
pub mod shown;
pub mod size;
pub mod transcript;
pub mod turn;
pub mod wake;

pub use reason::{HeldBack, LoreReason};
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
    #[schema(value_type = String)]
    pub reason: LoreReason,
}

/// Whether a prompt was in the server's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    Hit,
    Miss,
}

impl Cache {
    /// Whether it was.
    #[must_use]
    pub fn of(is_hit: bool) -> Self {
        if is_hit { Self::Hit } else { Self::Miss }
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
        }
    }
}

/// What a session's AI got to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    Overview,
    Delta,
}

impl Context {
    /// The name in JSON and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Delta => "delta",
        }
    }
}
