//! Runs the rules engine in a campaign: turns sheets into creatures, and an outcome's changes into columns.
//!
//! - `sheet`: characters and NPCs as [`rules::sheet::Creature`]s, and the columns for their changes.
//! - `cast`: the creatures that take part. They are found by name and locked in one order: characters before NPCs, each by
//!   id.
//! - `service`: runs a resolver with the right dice, writes its changes and answers its outcome.
//! - `http`: the route for a rest, and the SRD's tables.
//!
//! This module must never decide a rule, which is the crate `rules`'s job, and must never write in a preview. Each call
//! reads, resolves and writes in one transaction that locks its rows, so that two concurrent smites cannot spend the same
//! slot. To add a resolver, add a function to the crate and a tool to `tools/resolve/`.

pub mod cast;
pub mod http;
pub mod service;
pub(crate) mod sheet;
