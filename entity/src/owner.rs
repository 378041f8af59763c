//! Owners: groups and institutions with their own AI.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, Json, OwnerId, TenantId,
    lore::Scope,
    shapes::{AuthorsNote, Extensions, OwnerResource, PendingInstructions, ToolRef},
};

/// The kind of thing that an owner watches over.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumIter, DeriveActiveEnum, Serialize, Deserialize, ToSchema,
)]
#[sea_orm(rs_type = "String", db_type = "Text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    #[default]
    Location,
    Race,
    Profession,
    Faction,
}

impl Aspect {
    /// The scope of lore about it.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Aspect::Location => Scope::Zone,
            Aspect::Race => Scope::Race,
            Aspect::Profession => Scope::Profession,
            Aspect::Faction => Scope::Faction,
        }
    }
}

/// An owner. In the API its influence is one object, which `service` makes from the columns.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = OwnerRow)]
#[sea_orm(table_name = "owner")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: OwnerId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub personality_prompt: String,
    pub monitored_aspect: Aspect,
    pub associated_id: String,
    pub associated_key: String,
    #[schema(value_type = Vec<ToolRef>)]
    pub available_tools: Json<Vec<ToolRef>>,
    /// The sum of scores at which it reacts to a player. Null or 0: at none.
    pub reaction_threshold: Option<i32>,
    /// The score of a single action to which it reacts at once, even during the cooldown. Null: none.
    pub immediate_threshold: Option<i32>,
    /// Whether AI tools must not change it.
    pub ai_lock: bool,
    /// Slug of the model profile that this owner uses. If null, the campaign's choice for the task applies.
    pub model: Option<String>,
    /// What the author tells the model about this owner. The model follows it as far as the server's own rules allow.
    pub instructions: String,
    /// Instructions after the conversation, where models heed them most.
    pub post_history_instructions: String,
    #[schema(value_type = Option<AuthorsNote>)]
    pub authors_note: Option<Json<AuthorsNote>>,
    /// How it speaks, by example.
    pub example_dialogue: String,
    /// What it may say first when a player begins a conversation.
    #[schema(value_type = Vec<String>)]
    pub greetings: Json<Vec<String>>,
    /// The circumstances under which its conversations take place.
    pub scenario: String,
    /// Instructions that a file brought and that nobody has accepted yet.
    #[schema(value_type = Option<PendingInstructions>)]
    pub pending_instructions: Option<Json<PendingInstructions>>,
    pub influence_current: f64,
    pub influence_max: f64,
    pub influence_regen_per_hour: f64,
    #[serde(with = "time::serde::rfc3339")]
    pub influence_at: OffsetDateTime,
    #[schema(value_type = Vec<OwnerResource>)]
    pub resources: Json<Vec<OwnerResource>>,
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
