//! Lore entries.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{CampaignId, Json, LoreId, TenantId, shapes::Extensions};

/// Whom a lore entry concerns.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schema(as = LoreScope)]
pub enum Scope {
    #[default]
    Global,
    Zone,
    Race,
    Profession,
    Faction,
    Creature,
    Item,
}

impl Scope {
    /// The scope's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Zone => "zone",
            Scope::Race => "race",
            Scope::Profession => "profession",
            Scope::Faction => "faction",
            Scope::Creature => "creature",
            Scope::Item => "item",
        }
    }
}

/// When an entry enters a prompt: always, or when its keywords occur.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    #[default]
    Always,
    Keyword,
}

/// How secondary keys qualify a primary match.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Logic {
    #[default]
    AndAny,
    AndAll,
    NotAny,
    NotAll,
}

/// A lore entry.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Lore)]
#[sea_orm(table_name = "lore")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: LoreId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub slug: String,
    pub title: String,
    pub scope: Scope,
    pub associated_id: Option<String>,
    /// The slug for `associated_id`, which scopes are compared with.
    #[serde(skip)]
    pub associated_key: String,
    pub content: String,
    #[schema(value_type = Vec<String>)]
    pub tags: Json<Vec<String>>,
    pub priority: i32,
    pub enabled: bool,
    pub secret: bool,
    pub known_by: Vec<Uuid>,
    pub activation: Activation,
    #[schema(value_type = Vec<String>)]
    pub keys: Json<Vec<String>>,
    #[schema(value_type = Vec<String>)]
    pub secondary_keys: Json<Vec<String>>,
    pub logic: Logic,
    pub scan_depth: i32,
    pub ai_lock: bool,
    /// The number of tokens of the content in a prompt.
    pub tokens: i32,
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
