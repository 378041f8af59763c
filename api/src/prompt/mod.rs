//! Prompts: what a model is told, in sections, within budgets, byte for byte the same until something changes.
//!
//! - [`section`] is the order of sections, as data, with their budgets.
//! - [`fence`] wraps what people wrote, so that no text can leave its place.
//! - [`lore`] loads a scope's lore and finds keywords; [`scope`] says which scopes concern whom; [`wake`] lets lore in with a turn.
//! - [`segment`] writes one section; [`assemble`] decides which must be written again; [`cache`] keeps them.
//! - [`transcript`] is the conversation so far; [`preview`] shows it all without calling a model.
//!
//! A cached section is used only if the version heads it was built from are those of the database now. Heads are read
//! before the content they stamp, so that a change in between makes a section too old, never wrongly fresh. Nothing of a
//! prompt's base may hold a time, a counter or anything in the order of a hash map.

pub mod assemble;
pub mod cache;
pub mod fence;
pub mod http;
pub mod lore;
pub mod preview;
pub mod scope;
pub mod section;
pub mod segment;
pub mod tokens;
pub mod transcript;
pub mod wake;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What kind of entity speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    Npc,
    Owner,
}

impl EntityKind {
    /// The kind's table, and its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EntityKind::Npc => "npc",
            EntityKind::Owner => "owner",
        }
    }
}

/// What became of a lore entry, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoreDecision {
    pub id: Uuid,
    pub slug: String,
    pub included: bool,
    /// A word for programs and a few for people, such as `scope: zone port_town`.
    pub reason: String,
}
