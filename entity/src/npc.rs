//! Non-player characters.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, Json, NpcId, TenantId,
    shapes::{AuthorsNote, Condition, Effect, Extensions, NpcBehavior, PendingInstructions, Stats, ToolRef},
};

/// A non-player character.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Npc)]
#[sea_orm(table_name = "npc")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: NpcId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub personality_prompt: String,
    pub race: Option<String>,
    pub profession: Option<String>,
    pub location: Option<String>,
    pub faction: Option<String>,
    pub owner_ids: Vec<Uuid>,
    #[schema(value_type = Vec<ToolRef>)]
    pub available_tools: Json<Vec<ToolRef>>,
    #[schema(value_type = Stats)]
    pub stats: Json<Stats>,
    #[schema(value_type = Vec<Condition>)]
    pub conditions: Json<Vec<Condition>>,
    #[schema(value_type = Vec<Effect>)]
    pub effects: Json<Vec<Effect>>,
    pub disposition: String,
    /// How owners make it behave, the oldest first. At most 20.
    #[schema(value_type = Vec<NpcBehavior>)]
    pub behaviors: Json<Vec<NpcBehavior>>,
    #[schema(value_type = Vec<serde_json::Value>)]
    pub inventory: Json<Vec<serde_json::Value>>,
    /// The sum of scores at which it reacts to a player. Null or 0: at none.
    pub reaction_threshold: Option<i32>,
    /// The score of a single action to which it reacts at once, even during the cooldown. Null: none.
    pub immediate_threshold: Option<i32>,
    /// Whether AI tools must not change it.
    pub ai_lock: bool,
    /// Slug of the model profile that this NPC uses. If null, the campaign's choice for the task applies.
    pub model: Option<String>,
    /// What the author tells the model about this NPC. The model follows it as far as the server's own rules allow.
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
