//! Owners: guardians of a location, a race, a profession or a faction, with influence to spend.
//!
//! Influence grows with time. It is computed when it is read, so no background job is needed. [`influence`] spends it, and [`domain`]
//! says what an owner may act on.

pub mod domain;
pub mod influence;

use entity::{
    owner::{self, Aspect},
    shapes::{AuthorsNote, Extensions, OwnerResource, PendingInstructions, ToolRef},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{actors, guidance};
use base::{
    clock,
    error::{Error, Result},
};
use db::tenancy::TenantTx;
use edge::http::{
    resource::{self, Place, Resource, Stamp, col},
    validate,
};
use edge::world_routes;

/// What an owner can spend on tools: its current points, its maximum, and the points that it regains per hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Influence {
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub current: f64,
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub max: f64,
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub regen_per_hour: f64,
}

impl Default for Influence {
    fn default() -> Self {
        Self { current: 100.0, max: 100.0, regen_per_hour: 1.0 }
    }
}

impl Influence {
    /// The points at `now`, computed from the points stored at `then`.
    #[must_use]
    pub fn at(self, then: OffsetDateTime, now: OffsetDateTime) -> f64 {
        let hours = (now - then).as_seconds_f64().max(0.0) / 3600.0;
        (self.current + hours * self.regen_per_hour).clamp(0.0, self.max.max(0.0))
    }
}

/// An owner as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OwnerView {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub personality_prompt: String,
    pub monitored_aspect: Aspect,
    pub associated_id: String,
    pub available_tools: Vec<ToolRef>,
    pub reaction_threshold: i32,
    /// Slug of the model profile that this owner uses. If null, the campaign's choice for the task applies.
    pub model: Option<String>,
    /// What the author tells the model about this owner. The model follows it as far as the server's own rules allow.
    pub instructions: String,
    /// Instructions after the conversation, where models heed them most.
    pub post_history_instructions: String,
    pub authors_note: Option<AuthorsNote>,
    /// How it speaks, by example.
    pub example_dialogue: String,
    /// What it may say first when a player begins a conversation.
    pub greetings: Vec<String>,
    /// The circumstances under which its conversations take place.
    pub scenario: String,
    /// Instructions that a file brought and that nobody has accepted yet.
    pub pending_instructions: Option<PendingInstructions>,
    pub influence: Influence,
    pub resources: Vec<OwnerResource>,
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    pub external_ref: Option<String>,
    pub version: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

impl From<owner::Model> for OwnerView {
    fn from(m: owner::Model) -> Self {
        let stored = Influence {
            current: m.influence_current,
            max: m.influence_max,
            regen_per_hour: m.influence_regen_per_hour,
        };
        let current = (stored.at(m.influence_at, clock::now()) * 1000.0).floor() / 1000.0;
        Self {
            id: m.id.0,
            campaign_id: m.campaign_id.0,
            slug: m.slug,
            name: m.name,
            description: m.description,
            personality_prompt: m.personality_prompt,
            monitored_aspect: m.monitored_aspect,
            associated_id: m.associated_id,
            available_tools: m.available_tools.0,
            reaction_threshold: m.reaction_threshold,
            model: m.model,
            instructions: m.instructions,
            post_history_instructions: m.post_history_instructions,
            authors_note: m.authors_note.map(|note| note.0),
            example_dialogue: m.example_dialogue,
            greetings: m.greetings.0,
            scenario: m.scenario,
            pending_instructions: m.pending_instructions.map(|pending| pending.0),
            influence: Influence { current, ..stored },
            resources: m.resources.0,
            extensions: m.extensions.0,
            external_ref: m.external_ref,
            version: m.version,
            created_at: m.created_at,
            updated_at: m.updated_at,
        }
    }
}

/// The members of an owner that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct OwnerInput {
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
    pub monitored_aspect: Aspect,
    /// The location, race, profession or faction that the owner watches over. Any text; it is compared as a slug.
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub associated_id: String,
    #[garde(custom(actors::tool_refs))]
    #[serde(default)]
    pub available_tools: Vec<ToolRef>,
    #[garde(range(min = 0, max = 1_000_000))]
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default = "actors::threshold")]
    pub reaction_threshold: i32,
    /// Slug of the model profile that this owner uses. If null, the campaign's choice for the task applies.
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub model: Option<String>,
    /// What the author tells the model about this owner. The model follows it as far as the server's own rules allow.
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
    /// Instructions that a file brought. No model reads them.
    #[garde(custom(guidance::pending))]
    #[serde(default)]
    pub pending_instructions: Option<PendingInstructions>,
    #[garde(custom(influence_fits))]
    #[serde(default)]
    pub influence: Influence,
    /// What the owner and its NPCs have, such as grain. Their prompts show it.
    #[garde(custom(resources_fit))]
    #[serde(default)]
    pub resources: Vec<OwnerResource>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn influence_fits(i: &Influence, _: &()) -> garde::Result {
    let fits = [i.current, i.max, i.regen_per_hour].iter().all(|v| v.is_finite() && (0.0..=1_000_000.0).contains(v));
    if fits && i.current <= i.max {
        Ok(())
    } else {
        Err(garde::Error::new("numbers must be from 0 to 1000000, and `current` must be at most `max`"))
    }
}

/// The most resources of one owner.
const RESOURCES_MAX: usize = 50;
/// The largest amount of a resource.
const AMOUNT_MAX: f64 = 1_000_000_000.0;

fn resources_fit(resources: &[OwnerResource], cx: &()) -> garde::Result {
    if resources.len() > RESOURCES_MAX {
        return Err(garde::Error::new(format!("must have at most {RESOURCES_MAX} resources")));
    }
    let mut keys = std::collections::HashSet::new();
    for resource in resources {
        validate::line(&resource.name, cx)?;
        if !keys.insert(resource::scope_key(&resource.name)) {
            return Err(garde::Error::new("must name each resource once"));
        }
        let max = resource.max.unwrap_or(AMOUNT_MAX);
        if !(0.0..=AMOUNT_MAX).contains(&max) || !(0.0..=max).contains(&resource.amount) {
            return Err(garde::Error::new(format!(
                "amounts must be from 0 to `max`, and `max` must be at most {AMOUNT_MAX}"
            )));
        }
    }
    Ok(())
}

/// Changes the amount of a resource and returns the new amount, which is never less than 0 or more than the maximum.
/// One statement.
///
/// # Errors
/// `validation_failed` at `/resource_id` for an unknown resource; database errors.
pub async fn change_resource(tx: &TenantTx, owner: &owner::Model, name: &str, by: f64) -> Result<OwnerResource> {
    let mut resources = owner.resources.0.clone();
    let key = resource::scope_key(name);
    let Some(found) = resources.iter_mut().find(|resource| resource::scope_key(&resource.name) == key) else {
        let names: Vec<&str> = owner.resources.0.iter().map(|resource| resource.name.as_str()).collect();
        let known =
            if names.is_empty() { "You have none.".to_owned() } else { format!("You have: {}.", names.join(", ")) };
        return Err(Error::invalid("/resource_id", "unknown_reference", format!("There is no such resource. {known}")));
    };
    found.amount = (found.amount + by).clamp(0.0, found.max.unwrap_or(AMOUNT_MAX).max(0.0));
    let changed = found.clone();
    sqlx::query("UPDATE owner SET resources = $3 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(owner.id.0)
        .bind(sqlx::types::Json(resources))
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(changed)
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct OwnerFilter {
    /// Only owners that watch over this aspect.
    #[param(inline)]
    monitored_aspect: Option<Aspect>,
    /// Only owners of this location, race, profession or faction.
    associated_id: Option<String>,
}

/// Owners as a resource.
pub struct Owners;

impl Resource for Owners {
    const TABLE: &'static str = "owner";
    const IS_ACTOR: bool = true;
    const LISTS_TOOLS: bool = true;
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &[
        "personality_prompt",
        "available_tools",
        "reaction_threshold",
        "model",
        "instructions",
        "post_history_instructions",
        "authors_note",
        "example_dialogue",
        "greetings",
        "scenario",
        "pending_instructions",
        "influence",
        "resources",
        "extensions",
    ];
    type Entity = owner::Entity;
    type Model = owner::Model;
    type View = OwnerView;
    type Input = OwnerInput;
    type Filter = OwnerFilter;

    fn stamp(m: &owner::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    fn filter(select: sea_orm::Select<owner::Entity>, filter: &OwnerFilter) -> Result<sea_orm::Select<owner::Entity>> {
        use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
        let key = filter.associated_id.as_deref().map(resource::scope_key);
        Ok(select
            .apply_if(filter.monitored_aspect, |s, v| s.filter(col("monitored_aspect").eq(v)))
            .apply_if(key, |s, v| s.filter(col("associated_key").eq(v))))
    }

    async fn may_delete(tx: &TenantTx, owner: &owner::Model) -> Result<()> {
        actors::may_be_forgotten(tx, owner.campaign_id.0, owner.id.0).await
    }

    async fn columns(place: &Place<'_>, input: OwnerInput) -> Result<Map<String, Value>> {
        actors::model_exists(place, input.model.as_deref()).await?;
        Self::columns_of_known(place, input).await
    }

    async fn columns_of_known(_: &Place<'_>, input: OwnerInput) -> Result<Map<String, Value>> {
        let mut columns = resource::plain_columns(&input)?;
        columns.remove("influence");
        columns.insert("associated_key".to_owned(), resource::scope_key(&input.associated_id).into());
        columns.insert("influence_current".to_owned(), json!(input.influence.current));
        columns.insert("influence_max".to_owned(), json!(input.influence.max));
        columns.insert("influence_regen_per_hour".to_owned(), json!(input.influence.regen_per_hour));
        let now = clock::now().format(&Rfc3339).map_err(Error::internal)?;
        columns.insert("influence_at".to_owned(), now.into());
        Ok(columns)
    }
}

world_routes!(
    Owners,
    OwnerInput,
    OwnerView,
    OwnerFilter,
    "owner",
    "owners",
    "/v1/campaigns/{c}/owners",
    "/v1/campaigns/{c}/owners/{x}"
);

crate::revision_routes!(
    Owners,
    OwnerView,
    "owner",
    "owners",
    "/v1/campaigns/{c}/owners/{x}/revisions",
    "/v1/campaigns/{c}/owners/{x}/revisions/{seq}/restore"
);
