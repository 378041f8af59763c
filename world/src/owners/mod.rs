//! Owners: guardians of a place, a race, a profession or a faction, with influence to spend.
//!
//! Influence grows with time. It is computed when it is read, so no background job is needed.

use entity::{
    owner::{self, Aspect},
    shapes::{Extensions, ToolRef},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::actors;
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

/// What an owner can spend on tools: its current points, its most points, and the points it regains per hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Influence {
    pub current: f64,
    pub max: f64,
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
    pub influence: Influence,
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
            influence: Influence { current, ..stored },
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
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    pub name: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub description: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub personality_prompt: String,
    pub monitored_aspect: Aspect,
    /// The place, race, profession or faction. Any text; it is compared as a slug.
    #[garde(custom(validate::line))]
    pub associated_id: String,
    #[garde(custom(actors::tool_refs))]
    #[serde(default)]
    pub available_tools: Vec<ToolRef>,
    #[garde(range(min = 0, max = 1_000_000))]
    #[serde(default = "actors::threshold")]
    pub reaction_threshold: i32,
    #[garde(custom(influence_fits))]
    #[serde(default)]
    pub influence: Influence,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
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

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct OwnerFilter {
    /// Only owners that watch over this aspect.
    #[param(inline)]
    monitored_aspect: Option<Aspect>,
    /// Only owners of this place, race, profession or faction.
    associated_id: Option<String>,
}

/// Owners as a resource.
pub struct Owners;

impl Resource for Owners {
    const TABLE: &'static str = "owner";
    const IS_ACTOR: bool = true;
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] =
        &["personality_prompt", "available_tools", "reaction_threshold", "influence", "extensions"];
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

    async fn columns(_: &Place<'_>, input: OwnerInput) -> Result<Map<String, Value>> {
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
    "/campaigns/{c}/owners",
    "/campaigns/{c}/owners/{x}"
);

crate::revision_routes!(
    Owners,
    OwnerView,
    "owner",
    "owners",
    "/campaigns/{c}/owners/{x}/revisions",
    "/campaigns/{c}/owners/{x}/revisions/{seq}/restore"
);
