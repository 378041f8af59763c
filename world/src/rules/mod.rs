//! Runs the rules engine in a campaign: turns sheets into creatures, and an outcome's changes into columns.
//!
//! - `sheet`: characters and NPCs as [`rules::sheet::Creature`]s, and the columns for their changes.
//! - `cast`: the creatures that take part. They are found by name and locked in one order: characters before NPCs, each by
//!   id.
//! - `service`: runs a resolver with the right dice, writes its changes and answers its outcome.
//! - `values`, `context`: the types of arguments, and the place and moment of a roll.
//! - `http`: the route for a rest, and the SRD's tables.
//!
//! This module must never decide a rule, which is the crate `rules`'s job, and must never write in a preview. Each call
//! reads, resolves and writes in one transaction that locks its rows, so that two concurrent smites cannot spend the same
//! slot. To add a resolver, add a function to the crate and a tool to `ai/src/tools/resolve/`.

pub mod answers;
pub mod cast;
pub mod context;
pub mod http;
pub mod service;
pub mod sheet;
pub mod values;
