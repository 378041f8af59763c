//! The rules engine at work in a campaign: sheets become creatures, an outcome's changes become columns.
//!
//! - `sheet`: characters and NPCs as [`rules::sheet::Creature`]s, and the columns of what has changed.
//! - `cast`: who takes part, found by what a caller calls them and locked in one order: characters, then NPCs, each by id.
//! - `service`: a resolver run with the right dice, its changes written, its outcome told.
//! - `http`: a rest as an endpoint of its own, and the SRD's tables.
//!
//! It must never decide a rule (that is the crate `rules`), and never change what a preview only looks at. Everything of
//! one call is read, resolved and written in one transaction whose rows are locked, so that two smites at once cannot spend
//! one slot. To add a resolver: the function in the crate, a tool in `tools/resolve/`.

pub mod cast;
pub mod http;
pub mod service;
pub(crate) mod sheet;
