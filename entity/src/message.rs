//! Messages in a campaign.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, Json, MessageId, Seq, TenantId,
    shapes::{Extensions, Speaker},
};

/// The kind of a message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Type {
    #[default]
    Chat,
    Roll,
    Card,
    System,
}

/// The author of a message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Author {
    #[default]
    Player,
    Ai,
    Gm,
    System,
}

/// A message from a player, an AI entity, the game master or the system.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Message)]
#[sea_orm(table_name = "message")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: MessageId,
    /// The order of writing.
    #[serde(skip)]
    pub seq: Seq,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub session_id: Option<Uuid>,
    pub scene_id: Option<Uuid>,
    #[sea_orm(column_name = "type")]
    #[serde(rename = "type")]
    pub kind: Type,
    #[schema(value_type = Speaker)]
    pub speaker: Json<Speaker>,
    pub content: String,
    pub flavor: Option<String>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub roll: Option<Json<serde_json::Value>>,
    pub author: Author,
    pub player_id: Option<Uuid>,
    /// The NPC or owner in the conversation, or the session whose AI was asked and answered.
    pub entity_id: Option<Uuid>,
    #[schema(value_type = Vec<String>)]
    pub whisper_to: Json<Vec<String>>,
    pub blind: bool,
    pub turn_id: Option<Uuid>,
    /// The text as the model saw it. The transcript is rebuilt from it, `tokens` and `window_start`.
    #[serde(skip)]
    pub prompt_text: Option<String>,
    #[serde(skip)]
    pub tokens: i32,
    #[serde(skip)]
    pub window_start: Option<Seq>,
    /// The role of a session's AI at the time of its turn. A role that may see less is not shown what was told to a
    /// role that may see more.
    #[serde(skip)]
    pub told_as: Option<String>,
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
