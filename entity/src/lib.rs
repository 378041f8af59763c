//! The tables as types: one file per table, typed ids and enums, no queries.
//!
//! A model is also what the API returns: its serde names are those of the wire, and what clients do not see is skipped.
//! The schema's truth is in `migration`; a test compares the two. To add a table: a file here, a line below.

pub mod campaign;
pub mod character;
pub mod encounter;
pub mod id;
pub mod json;
pub mod lore;
pub mod memory;
pub mod message;
pub mod npc;
pub mod owner;
pub mod scene;
pub mod session;
pub mod shapes;

pub use id::*;
pub use json::Json;
