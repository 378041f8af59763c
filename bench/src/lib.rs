//! The load generator's parts: a lean client, floors to stand beside, what processes cost, and the report.
//!
//! A figure is a ratio to a minimal program that does the same work in the same run, never a time by itself.

pub mod client;
pub mod floors;
pub mod frontends;
pub mod process;
pub mod report;
pub mod world;

/// What a bench may fail with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
