//! NPCs: who they are, how they speak, which tools they may call, and a stat block for fights.

pub mod changes;
pub mod draft;
pub mod http;
pub mod place;

use entity::{
    npc,
    shapes::{AuthorsNote, Condition, Effect, Extensions, PendingInstructions, Stats, ToolRef},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::{actors, guidance};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::{
    resource::{self, Place, Ref, Resource, Stamp, col},
    validate,
};

pub use crate::tools::NPC_MEMORY as MEMORY_TOOL;

/// The members of an NPC that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NpcInput {
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub description: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub personality_prompt: String,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub race: Option<String>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub profession: Option<String>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub location: Option<String>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub faction: Option<String>,
    /// The owners that it depends on, by id or slug.
    #[garde(length(max = 50))]
    #[serde(default)]
    pub owner_ids: Vec<String>,
    #[garde(custom(actors::tool_refs))]
    #[serde(default)]
    pub available_tools: Vec<ToolRef>,
    #[serde(default)]
    pub stats: Stats,
    #[garde(length(max = 50))]
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[garde(length(max = 50))]
    #[serde(default)]
    pub effects: Vec<Effect>,
    #[garde(length(chars, max = 200))]
    #[serde(default = "neutral")]
    pub disposition: String,
    #[garde(length(max = 500))]
    #[serde(default)]
    pub inventory: Vec<Value>,
    /// The sum of scores at which it reacts to a player. Null or 0: at none.
    #[garde(inner(range(min = 0, max = 1_000_000)))]
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default)]
    pub reaction_threshold: Option<i32>,
    /// The score of a single action to which it reacts at once, even during the cooldown. Null: none.
    #[garde(inner(range(min = 1, max = 1_000_000)))]
    #[schema(minimum = 1, maximum = 1_000_000)]
    #[serde(default)]
    pub immediate_threshold: Option<i32>,
    /// Whether AI tools must not change it.
    #[serde(default)]
    pub ai_lock: bool,
    /// Slug of the model profile that this NPC uses. If null, the campaign's choice for the task applies.
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub model: Option<String>,
    /// What the author tells the model about this NPC. The model follows it as far as the server's own rules allow.
    #[garde(custom(guidance::instructions))]
    #[serde(default)]
    pub instructions: String,
    /// Instructions after the conversation, where models heed them most.
    #[garde(custom(guidance::instructions))]
    #[serde(default)]
    pub post_history_instructions: String,
    #[garde(custom(guidance::note))]
    #[serde(default)]
    pub authors_note: Option<AuthorsNote>,
    /// How it speaks, by example.
    #[garde(custom(guidance::instructions))]
    #[serde(default)]
    pub example_dialogue: String,
    /// What it may say first when a player begins a conversation.
    #[garde(custom(guidance::greetings))]
    #[serde(default)]
    pub greetings: Vec<String>,
    /// The circumstances under which its conversations take place.
    #[garde(custom(guidance::instructions))]
    #[serde(default)]
    pub scenario: String,
    /// What a character card tells models and lets the NPC do. It has no effect until somebody accepts it.
    #[garde(custom(guidance::pending))]
    #[serde(default)]
    pub pending_instructions: Option<PendingInstructions>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn neutral() -> String {
    "neutral".to_owned()
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct NpcFilter {
    /// Only NPCs at this location, spelled the same.
    location: Option<String>,
    /// Only NPCs of this faction, spelled the same.
    faction: Option<String>,
    /// Only NPCs of this owner, by id or slug.
    owner_id: Option<String>,
}

/// NPCs as a resource.
pub struct Npcs;

impl Resource for Npcs {
    const TABLE: &'static str = "npc";
    const IS_ACTOR: bool = true;
    const LISTS_TOOLS: bool = true;
    const NAMES_ACTORS: Option<(&'static str, &'static [&'static str])> = Some(("owner_ids", &["owner"]));
    const READ_ONLY: &'static [&'static str] = &["behaviors"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &[
        "personality_prompt",
        "available_tools",
        "stats",
        "behaviors",
        "reaction_threshold",
        "immediate_threshold",
        "ai_lock",
        "model",
        "owner_ids",
        "instructions",
        "post_history_instructions",
        "authors_note",
        "example_dialogue",
        "greetings",
        "scenario",
        "pending_instructions",
        "extensions",
    ];
    type Entity = npc::Entity;
    type Model = npc::Model;
    type View = npc::Model;
    type Input = NpcInput;
    type Filter = NpcFilter;

    fn stamp(m: &npc::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    fn filter(select: sea_orm::Select<npc::Entity>, filter: &NpcFilter) -> Result<sea_orm::Select<npc::Entity>> {
        use sea_orm::{
            QueryFilter, QueryTrait,
            sea_query::{Expr, ExprTrait},
        };
        Ok(select
            .apply_if(filter.location.clone(), |s, v| s.filter(col("location").eq(v)))
            .apply_if(filter.faction.clone(), |s, v| s.filter(col("faction").eq(v)))
            .apply_if(filter.owner_id.as_deref().map(Ref::parse), |s, v| {
                let (column, value) = match v {
                    Ref::Id(id) => ("o.id", sea_orm::Value::from(id)),
                    Ref::Slug(slug) => ("o.slug", slug.into()),
                };
                let of = "SELECT l.npc_id FROM npc_owner l JOIN owner o ON o.tenant_id = l.tenant_id AND o.id = l.owner_id \
                          WHERE l.tenant_id = npc.tenant_id AND l.campaign_id = npc.campaign_id";
                s.filter(Expr::cust_with_values(format!("id IN ({of} AND {column} = $1)"), [value]))
            }))
    }

    async fn may_delete(tx: &TenantTx, npc: &npc::Model) -> Result<()> {
        actors::may_be_forgotten(tx, npc.campaign_id.0, npc.id.0).await
    }

    async fn columns(place: &Place<'_>, mut input: NpcInput) -> Result<Map<String, Value>> {
        let owners = actors::resolve(place, "/owner_ids", &input.owner_ids, &["owner"]).await?;
        input.owner_ids = owners.iter().map(ToString::to_string).collect();
        actors::model_exists(place, input.model.as_deref()).await?;
        Self::columns_of_known(place, input).await
    }

    async fn columns_of_known(_: &Place<'_>, input: NpcInput) -> Result<Map<String, Value>> {
        resource::plain_columns(&input)
    }
}
