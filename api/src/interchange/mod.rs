//! Worlds in and out: a whole campaign as our own document, character cards and lorebooks of other programs, entity documents.
//!
//! - [`document`] is a campaign as one file; [`seed`] reads the entity documents of the MUD design that Tavernkeep unites.
//! - [`card`] and [`book`] are pure: bytes to what they mean here and a report of what was lost, and back. [`png`] and [`charx`] are
//!   their envelopes, [`crate::json`] reads their JSON, [`text`] their texts.
//! - [`apply`] puts what was read into a campaign, [`rows`] writes many rows in few statements, [`report`] says what became of it all.
//! - [`out`] and [`lorebook`] write cards and lorebooks, [`pieces`] sends what is long while it is written, [`described`] says of files as types
//!   what the OpenAPI document tells of them.
//!
//! Files are hostile: everything is bounded and checked, nothing that a file names is fetched, no path of a file is used. A dry run
//! is the import itself in a transaction that is not committed. To add a format of lorebooks: a line in each table of
//! `book/formats.rs` and a row in `tests/interchange/`.

pub mod apply;
pub mod book;
pub mod card;
pub mod charx;
pub mod described;
pub mod document;
pub mod file;
pub mod http;
pub mod lorebook;
pub mod names;
pub mod out;
pub mod pending;
pub mod pieces;
pub mod png;
pub mod report;
pub mod rows;
pub mod seed;
pub mod service;
pub mod text;

/// Bytes of an import.
pub const IMPORT_BYTES_MAX: usize = 32 * 1024 * 1024;
