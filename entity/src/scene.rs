//! Scenes.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, Json, SceneId, TenantId,
    shapes::{Extensions, SceneToken},
};

/// A scene: a place where messages are written, with tokens and notes.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Scene)]
#[sea_orm(table_name = "scene")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: SceneId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub slug: String,
    pub name: String,
    pub description: String,
    /// The location, as lore of zones names it. Default: the scene's name.
    pub location: Option<String>,
    pub active: bool,
    /// The frontend's channel for this scene. A channel has one scene.
    pub channel: Option<String>,
    pub width: i32,
    pub height: i32,
    #[schema(value_type = serde_json::Value)]
    pub grid: Json<serde_json::Value>,
    #[schema(value_type = Vec<SceneToken>)]
    pub tokens: Json<Vec<SceneToken>>,
    #[schema(value_type = Vec<serde_json::Value>)]
    pub notes: Json<Vec<serde_json::Value>>,
    #[schema(value_type = Vec<serde_json::Value>)]
    pub light_sources: Json<Vec<serde_json::Value>>,
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
