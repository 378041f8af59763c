//! Sessions: frontends at the table.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{CampaignId, Json, SessionId, TenantId, shapes::Extensions};

/// The role of the AI in a session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It runs the game.
    #[default]
    Gm,
    /// It helps a human game master. Only the game master sees what it says.
    Assistant,
    /// It plays a character.
    Player,
}

/// Who rolls the dice in a session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Dice {
    #[default]
    Server,
    /// The frontend while it is connected, otherwise the server.
    Frontend,
}

/// A frontend's session.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
#[sea_orm(table_name = "session")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: SessionId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    /// The frontend's own name for itself. Each has one session.
    pub client_id: String,
    #[schema(inline)]
    pub role: Role,
    #[schema(inline)]
    pub dice: Dice,
    /// The character the AI plays, if its role is `player`.
    pub player_id: Option<Uuid>,
    /// The scene of the session, if it has its own.
    pub scene_id: Option<Uuid>,
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
