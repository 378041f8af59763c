//! Erasure: removes the words of a player or a user from every table, and keeps them from coming back.
//!
//! - [`places`] states for every column of text or JSON what an erasure does with it. A test compares it with the
//!   database, so that no new column is forgotten.
//! - [`words`] collects what to look for: names, slug, email, and the texts of the character's sheet.
//! - [`service`] begins an erasure and reports its progress.
//! - [`steps`] continues it, one batch of a table per transaction.
//! - [`http`] has the route that shows the progress.
//!
//! The tables are searched in SQL (`migration/src/sql/erasure.sql`). An erasure that began is always finished: its row
//! keeps what to look for until then, and any server continues where another stopped. Once it is done, its row keeps no
//! words. To add a table or column, add a line in [`places`].

pub mod http;
pub mod places;
pub mod service;
pub mod steps;
mod words;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Whose words are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A player's character, and what its player wrote.
    Character,
    /// A user of the editor.
    User,
}

impl Kind {
    /// The name in the database and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Character => "character",
            Kind::User => "user",
        }
    }
}

/// The progress of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// The erasure is running. It continues by itself, even if this server stops.
    Running,
    /// The erasure is finished.
    Done,
}

/// An erasure. It says nothing about what was erased.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Erasure {
    pub id: Uuid,
    pub kind: Kind,
    pub status: Progress,
    /// The number of rows that were deleted or redacted so far.
    pub rows: i64,
    /// The number of times that all tables have been searched. This is repeated until nothing is found.
    pub pass: i32,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub done_at: Option<OffsetDateTime>,
}

/// Additional parameters of a deletion.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EraseParams {
    /// Also erases every copy: journal, transcripts, traces, stored answers. Requires the scopes `gm` and `admin`. This
    /// cannot be undone.
    pub erase: bool,
    /// With `erase`: also erases in campaigns that were forked from this one.
    pub forks: bool,
    /// With `erase`: up to ten other words to erase, such as nicknames, separated by commas.
    pub also: Option<String>,
}
