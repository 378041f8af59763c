//! The load generator's parts: a lean client, floors to compare with, the costs of processes, and the report.
//!
//! A figure is always a comparison with a minimal program that does the same work in the same run, never a time by
//! itself.

#![expect(clippy::disallowed_methods, reason = "a bench may fail loudly on a row that it cannot read")]

pub mod client;
pub mod floors;
pub mod frontends;
pub mod guard;
pub mod open;
pub mod overload;
pub mod process;
pub mod reactions;
pub mod report;
pub mod revert;
pub mod world;

/// Any error of a bench.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
