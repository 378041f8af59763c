//! Lore: what is known of the world, by whom, and when it enters a prompt.
//!
//! Secret entries are for the game master and for the entities in `known_by`; to everyone else they do not exist.

use entity::{
    lore::{self, Activation, Logic, Scope},
    shapes::Extensions,
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::{
    actors,
    auth::Caller,
    error::{Error, Result},
    http::{
        resource::{self, Place, Resource, Stamp, col},
        validate,
    },
    prompt::tokens,
    world_routes,
};

/// What a client writes of a lore entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct LoreInput {
    #[garde(custom(validate::opt_slug))]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    pub title: String,
    pub scope: Scope,
    /// The place, race, profession, faction, creature or item; needed unless the scope is global.
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub associated_id: Option<String>,
    /// Markdown.
    #[garde(length(chars, min = 1, max = 100_000))]
    pub content: String,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub tags: Vec<String>,
    /// Higher enters a full prompt first.
    #[garde(range(min = -1_000_000, max = 1_000_000))]
    #[serde(default)]
    pub priority: i32,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub secret: bool,
    /// NPCs, owners and characters, by id or slug, that know a secret entry.
    #[garde(length(max = 200))]
    #[serde(default)]
    pub known_by: Vec<String>,
    #[serde(default)]
    pub activation: Activation,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub keys: Vec<String>,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub secondary_keys: Vec<String>,
    #[serde(default)]
    pub logic: Logic,
    /// Messages looked through for keys, this turn's action included; 0: the action alone.
    #[garde(range(min = 0, max = 100))]
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default = "two")]
    pub scan_depth: i32,
    /// Whether AI tools must leave it as it is.
    #[serde(default)]
    pub ai_lock: bool,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn yes() -> bool {
    true
}
fn two() -> i32 {
    2
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct LoreFilter {
    #[param(inline)]
    scope: Option<Scope>,
    associated_id: Option<String>,
    tag: Option<String>,
    enabled: Option<bool>,
    secret: Option<bool>,
    #[param(inline)]
    activation: Option<Activation>,
}

/// The kind.
pub struct LoreEntries;

impl Resource for LoreEntries {
    const TABLE: &'static str = "lore";
    const LABEL: &'static str = "title";
    const READ_ONLY: &'static [&'static str] = &["tokens"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &["known_by", "extensions"];
    const SEARCH: Option<&'static str> = Some("search_lore");
    type Entity = lore::Entity;
    type Model = lore::Model;
    type View = lore::Model;
    type Input = LoreInput;
    type Filter = LoreFilter;

    fn stamp(m: &lore::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.title, updated_at: m.updated_at }
    }

    fn restrict(select: sea_orm::Select<lore::Entity>, caller: &Caller) -> sea_orm::Select<lore::Entity> {
        use sea_orm::{QueryFilter, sea_query::ExprTrait};
        if caller.sees_secrets() { select } else { select.filter(col("secret").eq(false)) }
    }

    fn filter(select: sea_orm::Select<lore::Entity>, filter: &LoreFilter) -> Result<sea_orm::Select<lore::Entity>> {
        use sea_orm::{
            QueryFilter, QueryTrait,
            sea_query::{Expr, ExprTrait},
        };
        let key = filter.associated_id.as_deref().map(resource::scope_key);
        Ok(select
            .apply_if(filter.scope, |s, v| s.filter(col("scope").eq(v)))
            .apply_if(key, |s, v| s.filter(col("associated_key").eq(v)))
            .apply_if(filter.tag.clone(), |s, v| {
                s.filter(Expr::cust_with_values("tags @> jsonb_build_array($1::text)", [v]))
            })
            .apply_if(filter.enabled, |s, v| s.filter(col("enabled").eq(v)))
            .apply_if(filter.secret, |s, v| s.filter(col("secret").eq(v)))
            .apply_if(filter.activation, |s, v| s.filter(col("activation").eq(v))))
    }

    async fn columns(place: &Place<'_>, mut input: LoreInput) -> Result<Map<String, Value>> {
        input.associated_id = input.associated_id.filter(|a| !a.trim().is_empty());
        match (input.scope, &input.associated_id) {
            (Scope::Global, Some(_)) => {
                return Err(Error::invalid("/associated_id", "invalid_value", "A global entry has no associated_id."));
            }
            (Scope::Global, None) | (_, Some(_)) => {}
            (_, None) => {
                return Err(Error::invalid("/associated_id", "required", "This scope needs an associated_id."));
            }
        }
        if input.activation == Activation::Keyword && input.keys.is_empty() {
            return Err(Error::invalid("/keys", "required", "An entry that waits for keywords needs keys."));
        }
        let known_by = actors::resolve(place, "/known_by", &input.known_by, &["npc", "owner", "character"]).await?;
        let mut columns = resource::plain_columns(&input)?;
        columns.insert("known_by".to_owned(), json!(known_by));
        let key = input.associated_id.as_deref().map(resource::scope_key).unwrap_or_default();
        columns.insert("associated_key".to_owned(), key.into());
        columns.insert("tokens".to_owned(), tokens::count(&input.content).into());
        Ok(columns)
    }
}

world_routes!(
    LoreEntries,
    LoreInput,
    lore::Model,
    LoreFilter,
    "lore",
    "lore",
    "/campaigns/{c}/lore",
    "/campaigns/{c}/lore/{x}"
);
