//! The world: what a campaign consists of, its journal and history, its dice, rules, fights and sessions, and how worlds
//! are imported, exported and forked.
//!
//! No module here knows a model or a prompt. `tests/architecture.rs` lists the order of these modules.

pub mod actors;
pub mod around;
pub mod audit;
pub mod campaigns;
pub mod characters;
pub mod dice;
pub mod edits;
pub mod encounters;
pub mod erasure;
pub mod fallen;
pub mod guidance;
pub mod interchange;
pub mod journal;
pub mod lore;
pub mod memory;
pub mod messages;
pub mod npcs;
pub mod overview;
pub mod owners;
pub mod paused;
pub mod player_links;
pub mod playing;
pub mod revisions;
pub mod rules;
pub mod sample;
pub mod scenes;
pub mod seat;
pub mod sessions;
pub mod significance;
pub mod table;
pub mod tools;
