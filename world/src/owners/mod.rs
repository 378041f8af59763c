//! Owners: guardians of a location, a race, a profession or a faction, with influence to spend.
//!
//! Influence grows with time. It is computed when it is read, so no background job is needed. [`influence`] spends it, and [`domain`]
//! says what an owner may act on.

pub mod domain;
pub mod http;
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
    error::{Code, Error, Result},
};
use db::tenancy::TenantTx;
use edge::http::{
    resource::{self, Place, Resource, Stamp, col},
    validate,
};

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
    /// What the owner has, such as grain. Its tool `modify_resource` changes it, and prompts of the owner and its NPCs show it.
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
            immediate_threshold: m.immediate_threshold,
            ai_lock: m.ai_lock,
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
    /// Instructions that nobody has accepted yet. No model reads them.
    #[garde(custom(guidance::pending))]
    #[serde(default)]
    pub pending_instructions: Option<PendingInstructions>,
    #[garde(custom(influence_fits))]
    #[serde(default)]
    pub influence: Influence,
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

/// Checks resources that a file brought.
///
/// # Errors
/// Says what does not fit.
pub fn resources_fit(resources: &[OwnerResource]) -> garde::Result {
    if resources.len() > RESOURCES_MAX {
        return Err(garde::Error::new(format!("must have at most {RESOURCES_MAX} resources")));
    }
    let mut keys = std::collections::HashSet::new();
    for resource in resources {
        validate::line(&resource.name, &())?;
        validate::opt_line(&resource.location, &())?;
        if !keys.insert(key_of(&resource.name, resource.location.as_deref())) {
            return Err(garde::Error::new("must name each resource of a location once"));
        }
        if !(0.0..=AMOUNT_MAX).contains(&resource.amount) {
            return Err(garde::Error::new(format!("amounts must be from 0 to {AMOUNT_MAX}")));
        }
    }
    Ok(())
}

/// What tells resources apart: the name and the location.
fn key_of(name: &str, location: Option<&str>) -> (String, Option<String>) {
    (resource::scope_key(name), location.map(resource::scope_key))
}

/// Changes how much an owner, whose row is locked, has of something at a location, to three decimals. What it does not have yet begins with
/// 0, and what is used up is gone. Returns the new amount. One statement.
///
/// # Errors
/// `not_enough` if less than 0 would be left; `validation_failed` for too much of it, or for too many resources; database errors.
pub async fn change_resource(
    tx: &TenantTx,
    owner: &owner::Model,
    (name, location): (&str, Option<&str>),
    by: f64,
) -> Result<OwnerResource> {
    let mut resources = owner.resources.0.clone();
    let key = key_of(name, location);
    let has = resources.iter().position(|own| key_of(&own.name, own.location.as_deref()) == key);
    let new = || OwnerResource { name: name.to_owned(), amount: 0.0, location: location.map(ToOwned::to_owned) };
    let mut changed = has.and_then(|at| resources.get(at).cloned()).unwrap_or_else(new);
    let now = ((changed.amount + by) * 1000.0).round() / 1000.0;
    if now < 0.0 {
        let why = format!("You have only {} of {}.", changed.amount, changed.name);
        return Err(Error::new(Code::NotEnough, why));
    }
    if now > AMOUNT_MAX {
        let why = format!("You would have {now}; the most is {AMOUNT_MAX}.");
        return Err(Error::invalid("/change", "invalid_value", why));
    }
    changed.amount = now;
    if has.is_none() && now > 0.0 && resources.len() >= RESOURCES_MAX {
        let why = format!("You have {RESOURCES_MAX} resources already, the most that an owner can have.");
        return Err(Error::invalid("/name", "invalid_value", why));
    }
    match has {
        Some(at) if now > 0.0 => resources.iter_mut().skip(at).take(1).for_each(|own| own.clone_from(&changed)),
        Some(at) => drop(resources.remove(at)),
        None if now > 0.0 => resources.push(changed.clone()),
        None => {}
    }
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
    const READ_ONLY: &'static [&'static str] = &["resources"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &[
        "personality_prompt",
        "available_tools",
        "reaction_threshold",
        "immediate_threshold",
        "ai_lock",
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
