//! Encounters, as lists and the journal show them.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{CampaignId, EncounterId, Json, TenantId, shapes::Extensions};

/// A fight, as far as lists show it.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Encounter)]
#[sea_orm(table_name = "encounter")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: EncounterId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    /// Empty if it has none.
    pub name: String,
    /// `active` or `ended`.
    pub status: String,
    pub round: i32,
    /// The place of the current participant among those whom everybody knows of, from 1; 0 if it is nobody's turn, or that of
    /// somebody hidden.
    pub turn: i32,
    pub current_participant_id: Option<String>,
    pub participant_count: i32,
    /// How it ended.
    pub outcome: Option<String>,
    pub notes: Option<String>,
    #[serde(skip)]
    pub hidden: bool,
    /// What the latest action did, for the journal.
    #[serde(skip)]
    pub last_action: Json<serde_json::Value>,
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
