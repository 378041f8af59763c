//! Campaigns: one row per world.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, Json, TenantId,
    shapes::{Extensions, ForkedFrom, PendingInstructions},
};

/// A campaign: one world and everything in it.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Campaign)]
#[sea_orm(table_name = "campaign")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: CampaignId,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub game_system: String,
    pub game_time: Option<String>,
    /// What the author tells all models of the campaign: tone, style, length, language, lines and veils.
    pub instructions: String,
    /// Instructions that a file brought and that nobody has accepted yet.
    #[schema(value_type = Option<PendingInstructions>)]
    pub pending_instructions: Option<Json<PendingInstructions>>,
    #[schema(value_type = Object)]
    pub settings: Json<Extensions>,
    #[schema(value_type = Object)]
    pub extensions: Json<Extensions>,
    pub external_ref: Option<String>,
    /// What it was copied from; null unless it is a fork.
    #[schema(value_type = Option<ForkedFrom>)]
    pub forked_from: Option<Json<ForkedFrom>>,
    pub version: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
