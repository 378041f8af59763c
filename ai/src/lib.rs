//! The game master: prompts, tools, turns, commands and the planner, and the frontends that play with them.
//!
//! The model proposes; everything here that writes goes through the services of `world`. `tests/architecture.rs` lists
//! the order of these modules.

pub mod bridge;
pub mod commands;
pub mod corpora;
pub mod fair_cache;
pub mod frontends;
pub mod planner;
pub mod prompt;
pub mod reactions;
pub mod state;
pub mod tools;
pub mod turns;
