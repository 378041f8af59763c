//! Lore: texts about the world, who knows them, and when they go into a prompt.
//!
//! Secret entries are only for the game master and for those in `known_by`. For everybody else they do not exist.

pub mod bulk;
pub mod http;
pub mod links;
pub mod overview;

use entity::{
    lore::{self, Activation, Logic, Scope},
    shapes::Extensions,
};
use garde::Validate;
use pulldown_cmark::Options;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::actors;
use base::{
    error::{Error, FieldError, Result},
    tokens,
};
use edge::{
    caller::Caller,
    http::{
        paging::SortKey,
        resource::{self, Place, Resource, Stamp, col},
        validate,
    },
};

/// The Markdown of contents.
pub const MARKDOWN: Options = Options::ENABLE_WIKILINKS
    .union(Options::ENABLE_TABLES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The largest number of characters in an entry's content.
pub const CONTENT_CHARS_MAX: usize = 100_000;
/// The allowed priorities.
pub const PRIORITIES: std::ops::RangeInclusive<i32> = -1_000_000..=1_000_000;

/// The members of a lore entry that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct LoreInput {
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub title: String,
    pub scope: Scope,
    /// The location, race, profession, faction, creature or item that the entry is about. Required unless the scope is
    /// global.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub associated_id: Option<String>,
    /// The text, in Markdown.
    #[garde(length(chars, min = 1, max = CONTENT_CHARS_MAX))]
    #[schema(min_length = 1)]
    pub content: String,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub tags: Vec<String>,
    /// Entries with a higher priority go into a full prompt first.
    #[garde(range(min = -1_000_000, max = 1_000_000))]
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    #[serde(default)]
    pub priority: i32,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub secret: bool,
    /// The NPCs, owners and characters that know a secret entry, by id or slug.
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
    /// How many messages are searched for keywords, including this turn's action; 0 searches only the action.
    #[garde(range(min = 0, max = 100))]
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default = "two")]
    pub scan_depth: i32,
    /// Whether AI tools must not change it.
    #[serde(default)]
    pub ai_lock: bool,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn yes() -> bool {
    true
}
fn two() -> i32 {
    2
}

/// Checks that a global entry has no `associated_id` and that any other entry has one.
///
/// # Errors
/// What is wrong.
pub fn check_scope(scope: Scope, associated_id: Option<&str>) -> Result<(), FieldError> {
    let wrong = |code: &'static str, message: &str| {
        Err(FieldError { pointer: "/associated_id".to_owned(), code: code.into(), message: message.to_owned() })
    };
    match (scope, associated_id) {
        (Scope::Global, Some(_)) => wrong("invalid_value", "A global entry must not have an associated_id."),
        (Scope::Global, None) | (_, Some(_)) => Ok(()),
        (_, None) => wrong("required", "An entry with this scope must have an associated_id."),
    }
}

/// Checks that an entry that is activated by keywords has some.
///
/// # Errors
/// What is wrong.
pub fn check_keys(activation: Activation, keys: &[String]) -> Result<(), FieldError> {
    if activation == Activation::Keyword && keys.is_empty() {
        let message = "An entry that is activated by keywords must have keys.".to_owned();
        return Err(FieldError { pointer: "/keys".to_owned(), code: "required".into(), message });
    }
    Ok(())
}

/// Filters of the list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct LoreFilter {
    /// Text to search for. In a query string, use the parameter `q` that every list has.
    #[param(ignore)]
    #[schema(max_length = 200)]
    pub q: Option<String>,
    #[param(inline)]
    pub scope: Option<Scope>,
    pub associated_id: Option<String>,
    pub tag: Option<String>,
    pub enabled: Option<bool>,
    pub secret: Option<bool>,
    pub ai_lock: Option<bool>,
    #[param(inline)]
    pub activation: Option<Activation>,
}

/// Lore entries as a resource.
pub struct LoreEntries;

impl Resource for LoreEntries {
    const TABLE: &'static str = "lore";
    const LABEL: &'static str = "title";
    const READ_ONLY: &'static [&'static str] = &["tokens"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &["known_by", "extensions"];
    const SORTS: &'static [SortKey] =
        &[SortKey::Created, SortKey::Updated, SortKey::Name, SortKey::Priority, SortKey::Tokens];
    const SEARCH: Option<&'static str> = Some("search_lore");
    const FOLDED: &'static [&'static str] = &["title", "content", "tags", "keys", "secondary_keys"];
    const NAMES_ACTORS: Option<(&'static str, &'static [&'static str])> =
        Some(("known_by", &["npc", "owner", "character"]));
    type Entity = lore::Entity;
    type Model = lore::Model;
    type View = lore::Model;
    type Input = LoreInput;
    type Filter = LoreFilter;

    fn stamp(m: &lore::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.title, updated_at: m.updated_at }
    }

    fn number(m: &lore::Model, key: SortKey) -> Option<i64> {
        match key {
            SortKey::Priority => Some(m.priority.into()),
            SortKey::Tokens => Some(m.tokens.into()),
            _ => None,
        }
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
                s.filter(Expr::cust_with_values("id IN (SELECT tagged_lore($1))", [v]))
            })
            .apply_if(filter.enabled, |s, v| s.filter(col("enabled").eq(v)))
            .apply_if(filter.secret, |s, v| s.filter(col("secret").eq(v)))
            .apply_if(filter.ai_lock, |s, v| s.filter(col("ai_lock").eq(v)))
            .apply_if(filter.activation, |s, v| s.filter(col("activation").eq(v))))
    }

    /// Removes those who no longer exist from `known_by`.
    async fn before_restore(place: &Place<'_>, content: &mut Map<String, Value>) -> Result<()> {
        let named = content.get("known_by").and_then(Value::as_array).cloned().unwrap_or_default();
        if named.is_empty() {
            return Ok(());
        }
        let ids: Vec<uuid::Uuid> = named.iter().filter_map(|id| id.as_str()?.parse().ok()).collect();
        let there = actors::existing(place, &ids).await?;
        content.insert("known_by".to_owned(), json!(there));
        Ok(())
    }

    async fn columns(place: &Place<'_>, mut input: LoreInput) -> Result<Map<String, Value>> {
        let known_by = actors::resolve(place, "/known_by", &input.known_by, &["npc", "owner", "character"]).await?;
        input.known_by = known_by.iter().map(ToString::to_string).collect();
        Self::columns_of_known(place, input).await
    }

    async fn columns_of_known(_: &Place<'_>, mut input: LoreInput) -> Result<Map<String, Value>> {
        input.associated_id = input.associated_id.filter(|a| !a.trim().is_empty());
        let wrong: Vec<FieldError> =
            [check_scope(input.scope, input.associated_id.as_deref()), check_keys(input.activation, &input.keys)]
                .into_iter()
                .filter_map(Result::err)
                .collect();
        if !wrong.is_empty() {
            return Err(Error::validation(wrong));
        }
        let mut columns = resource::plain_columns(&input)?;
        let key = input.associated_id.as_deref().map(resource::scope_key).unwrap_or_default();
        columns.insert("associated_key".to_owned(), key.into());
        columns.insert("tokens".to_owned(), tokens::count_apart(input.content).await?.into());
        Ok(columns)
    }
}
