//! The tables as types: one file for each table, with typed ids and enums but without queries.
//!
//! A model is also what the API returns: its serde names are the API's, and columns that clients must not see are
//! skipped. `migration` defines the schema; a test compares the two. To add a table, add a file and a line below.

pub mod campaign;
pub mod character;
pub mod encounter;
pub mod id;
pub mod json;
pub mod kind;
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
