//! Memories of NPCs and owners about characters.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{CampaignId, Json, MemoryId, TenantId, shapes::Extensions};

/// The kind of a memory's holder.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    #[default]
    Npc,
    Owner,
}

/// Where a memory came from.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Source {
    #[default]
    Personal,
    Private,
    Broadcast,
    Editor,
    Import,
}

impl Source {
    /// The source with this name; `Editor` for an unknown one.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "personal" => Self::Personal,
            "private" => Self::Private,
            "broadcast" => Self::Broadcast,
            "import" => Self::Import,
            _ => Self::Editor,
        }
    }
}

/// A memory as it is stored. The API names its holder and player instead of their ids (`memory::View`).
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryRow)]
#[sea_orm(table_name = "memory")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: MemoryId,
    /// The order of writing.
    #[serde(skip)]
    pub seq: i64,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub holder_type: Holder,
    pub holder_id: Uuid,
    pub subject_type: String,
    pub subject_id: Uuid,
    pub text: String,
    pub game_time: Option<String>,
    pub pinned: bool,
    pub source: Source,
    pub broadcast_id: Option<Uuid>,
    pub author: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub extensions: Json<Extensions>,
    pub external_ref: Option<String>,
    pub version: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
