//! Player characters.

use std::collections::BTreeMap;

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    CampaignId, CharacterId, Json, TenantId,
    shapes::{
        Abilities, Concentration, Condition, DeathSaves, Effect, Extensions, Feature, HitDice, Resource, Spell,
        SpellSlot, Weapon,
    },
};

/// A player character and its sheet.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, Serialize, Deserialize, ToSchema)]
#[schema(as = Character)]
#[sea_orm(table_name = "character")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[serde(skip)]
    pub tenant_id: TenantId,
    #[sea_orm(primary_key, auto_increment = false)]
    #[schema(value_type = Uuid)]
    pub id: CharacterId,
    #[schema(value_type = Uuid)]
    pub campaign_id: CampaignId,
    pub slug: String,
    pub name: String,
    pub player_name: Option<String>,
    pub player_user: Option<Uuid>,
    pub race: String,
    pub profession: String,
    pub faction: Option<String>,
    pub level: i32,
    #[schema(value_type = Abilities)]
    pub abilities: Json<Abilities>,
    pub max_hp: i32,
    pub hp: i32,
    pub temp_hp: i32,
    pub armor_class: i32,
    pub speed: i32,
    pub size: String,
    #[schema(value_type = Vec<String>)]
    pub skill_proficiencies: Json<Vec<String>>,
    #[schema(value_type = Vec<String>)]
    pub saving_throw_proficiencies: Json<Vec<String>>,
    #[schema(value_type = Vec<String>)]
    pub weapon_proficiencies: Json<Vec<String>>,
    #[schema(value_type = Vec<Feature>)]
    pub features: Json<Vec<Feature>>,
    #[schema(value_type = Vec<Weapon>)]
    pub weapons: Json<Vec<Weapon>>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub armor: Option<Json<serde_json::Value>>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub shield: Option<Json<serde_json::Value>>,
    pub spellcasting_ability: Option<String>,
    #[schema(value_type = Vec<Spell>)]
    pub spells: Json<Vec<Spell>>,
    #[schema(value_type = Vec<Effect>)]
    pub effects: Json<Vec<Effect>>,
    #[schema(value_type = Option<Concentration>)]
    pub concentration: Option<Json<Concentration>>,
    #[schema(value_type = Option<HitDice>)]
    pub hit_dice: Option<Json<HitDice>>,
    #[schema(value_type = DeathSaves)]
    pub death_saves: Json<DeathSaves>,
    #[schema(value_type = Vec<String>)]
    pub resistances: Json<Vec<String>>,
    #[schema(value_type = Vec<String>)]
    pub immunities: Json<Vec<String>>,
    #[schema(value_type = Vec<String>)]
    pub vulnerabilities: Json<Vec<String>>,
    #[schema(value_type = BTreeMap<String, SpellSlot>)]
    pub spell_slots: Json<BTreeMap<String, SpellSlot>>,
    #[schema(value_type = Vec<Resource>)]
    pub resources: Json<Vec<Resource>>,
    #[schema(value_type = Vec<Condition>)]
    pub conditions: Json<Vec<Condition>>,
    #[schema(value_type = Vec<serde_json::Value>)]
    pub inventory: Json<Vec<serde_json::Value>>,
    pub location: Option<String>,
    /// Whether AI tools must not change it.
    pub ai_lock: bool,
    /// Features used once in a turn or since the last long rest. The rules maintain it.
    #[serde(skip)]
    pub turn_flags: Json<BTreeMap<String, String>>,
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
