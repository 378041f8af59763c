//! Erasure: a player's or a user's words leave every table, and stay away.
//!
//! - [`places`] says of every column of text or JSON what an erasure does with it. A test compares it with the database, so that a new
//!   column is not forgotten.
//! - [`words`] is what is looked for: names, slug, email, and what the character's sheet tells.
//! - [`service`] begins an erasure and tells how far it is; [`steps`] carries it on, a portion of a table in a transaction of its own.
//! - [`http`] is where to ask.
//!
//! The walking is SQL (`migration/src/sql/erasure.sql`). An erasure that began is finished: what it looks for is in its row until
//! then, and any server goes on where another stopped. Its row never keeps a word once it is done.
//! A new table or column is a line in [`places`].

pub mod http;
pub mod places;
pub mod service;
pub mod steps;
mod words;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Whose words go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A player's character, and what its player wrote.
    Character,
    /// A user of the editor.
    User,
}

impl Kind {
    /// The name in the database and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Character => "character",
            Kind::User => "user",
        }
    }
}

/// How far an erasure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It is under way: by itself, also if this server stops.
    Running,
    /// Nothing is left.
    Done,
}

/// An erasure. It says nothing of what was erased.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Erasure {
    pub id: Uuid,
    pub kind: Kind,
    pub status: Progress,
    /// Rows that were deleted or redacted so far.
    pub rows: i64,
    /// How often every table is gone through: until nothing is found.
    pub pass: i32,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub done_at: Option<OffsetDateTime>,
}

/// What a deletion may ask for beside.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EraseParams {
    /// Every copy goes too: history, transcripts, traces, stored answers. Needs the scopes `gm` and `admin`. It cannot be undone.
    pub erase: bool,
    /// With `erase`: also in campaigns that were forked from this one.
    pub forks: bool,
    /// With `erase`: other words to erase, such as nicknames, with commas between; at most ten.
    pub also: Option<String>,
}
