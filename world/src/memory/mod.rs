//! Memories: what an NPC or an owner remembers about a player. People add, [`change`] and delete them. AI tools write them
//! through the same [`service`].
//!
//! Their order is the order of writing, `seq`, a number that the database gives. It stays inside of the server.
//!
//! [`subject`] decides about whom a tool may write a memory.
//!
//! A broadcast has one row for each NPC of an owner, all with the same `broadcast_id`; retracting it deletes them all.
//! [`broadcasts`] shows each as a single item. A copy that is moved to another holder or player no longer belongs to
//! its broadcast.

pub mod broadcasts;
pub mod change;
pub mod http;
pub mod list;
pub mod recall;
pub mod service;
pub mod subject;
pub mod whose;

use entity::memory::{Holder, Source};
use serde::Serialize;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use base::{error::Result, stored::Columns};

/// The largest number of characters in a memory.
pub const TEXT_CHARS_MAX: usize = 2000;
/// The largest number of characters in the time at which a memory happened.
pub const GAME_TIME_CHARS_MAX: usize = 120;

/// A memory as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MemoryView {
    pub id: Uuid,
    /// Its place in the order of writing.
    #[serde(skip)]
    pub seq: i64,
    pub campaign_id: Uuid,
    pub holder: HolderView,
    /// The player character it is about.
    pub player_id: Uuid,
    pub player_slug: Option<String>,
    pub text: String,
    /// When it happened in the world, such as `second day of the fair`.
    pub game_time: Option<String>,
    /// Whether it gets room in prompts first, up to a quarter of the budget.
    pub pinned: bool,
    #[schema(inline)]
    pub source: Source,
    pub broadcast_id: Option<Uuid>,
    /// The API key or user that wrote it, if a person did.
    pub author: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub extensions: serde_json::Value,
    pub external_ref: Option<String>,
    pub version: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

/// The NPC or owner that has the memory.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HolderView {
    #[serde(rename = "type")]
    #[schema(inline)]
    pub kind: Holder,
    pub id: Uuid,
    pub slug: Option<String>,
}

impl MemoryView {
    /// Reads a row of [`service::SELECT`].
    /// # Errors
    /// `internal` if the row cannot be read.
    pub fn of(row: &PgRow) -> Result<Self> {
        let kind = if row.read::<String>("holder_type")? == "npc" { Holder::Npc } else { Holder::Owner };
        Ok(Self {
            id: row.read("id")?,
            seq: row.read("seq")?,
            campaign_id: row.read("campaign_id")?,
            holder: HolderView { kind, id: row.read("holder_id")?, slug: row.read("holder_slug")? },
            player_id: row.read("subject_id")?,
            player_slug: row.read("player_slug")?,
            text: row.read("text")?,
            game_time: row.read("game_time")?,
            pinned: row.read("pinned")?,
            source: Source::named(row.read("source")?),
            broadcast_id: row.read("broadcast_id")?,
            author: row.read("author")?,
            turn_id: row.read("turn_id")?,
            extensions: row.read("extensions")?,
            external_ref: row.read("external_ref")?,
            version: row.read("version")?,
            created_at: row.read("created_at")?,
            updated_at: row.read("updated_at")?,
        })
    }
}
