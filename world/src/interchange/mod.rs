//! Import and export: a whole campaign as our own document, character cards and lorebooks of other programs, and entity
//! documents.
//!
//! - [`document`] is a campaign as one file. [`seed`] reads the entity documents of the MUD design that Tavernkeep
//!   unites.
//! - [`card`] and [`book`] are pure: they convert bytes to our terms with a report of what was lost, and back. [`png`]
//!   and [`charx`] unpack them, [`picture`] rejects other pictures, [`base::json`] reads their JSON, [`text`] their texts.
//! - [`apply`] writes what was read into a campaign, [`rows`] writes many rows in few statements, and [`report`] says
//!   what happened to each.
//! - [`out`] and [`lorebook`] write cards and lorebooks, [`pieces`] streams long downloads, and [`described`] has the
//!   types of files for the OpenAPI document.
//!
//! Files may be hostile. Everything is limited and checked, nothing that a file names is fetched, and no path in a file
//! is used. A dry run is the import itself in a transaction that is not committed. To add a lorebook format, add a line
//! in each table of `book/formats.rs` and a row in `tests/interchange/`.

pub mod apply;
pub mod book;
pub mod card;
pub mod charx;
pub mod described;
pub mod document;
pub mod file;
pub mod http;
pub mod in_force;
pub mod lorebook;
pub mod names;
pub mod originals;
pub mod out;
pub mod pending;
pub mod picture;
pub mod pieces;
pub mod png;
pub mod report;
pub mod rows;
pub mod seed;
pub mod service;
pub mod text;

/// The largest import in bytes.
pub const IMPORT_BYTES_MAX: usize = edge::caller::access::FILE_BYTES_MAX;
