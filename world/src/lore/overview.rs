//! An overview of a campaign's lore: totals, tags, broken links, duplicates; and copying an entry.

use std::collections::HashMap;

use entity::lore::{self as table, Scope};
use garde::Validate;
use sea_orm::{FromQueryResult, QueryOrder, QuerySelect, sea_query::Expr};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{LoreEntries, LoreFilter, LoreInput, links::Backlink};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        read,
        resource::{self, Place, READ_ONLY, Ref},
        validate,
    },
};

/// The largest number of groups of duplicates in an answer.
const GROUPS_MAX: i64 = 100;
/// The largest number of entries that are listed for a group.
const GROUP_ENTRIES_MAX: i32 = 20;
/// The largest number of tags in an answer.
const TAGS_MAX: i64 = 500;

/// The totals of one scope.
#[derive(Clone, Debug, Serialize, ToSchema, FromQueryResult)]
pub struct ScopeTotal {
    #[schema(inline)]
    pub scope: Scope,
    pub count: i64,
    pub tokens: i64,
    /// Of these, the tokens of entries that go into every prompt of the scope: enabled, not secret, always active.
    pub always_tokens: i64,
}

/// The totals of lore entries.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Totals {
    pub count: i64,
    pub tokens: i64,
    pub by_scope: Vec<ScopeTotal>,
}

/// Counts the entries that a list with these filters would show. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn sum(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    q: Option<&str>,
    filter: &LoreFilter,
) -> Result<Totals> {
    let always = "coalesce(sum(tokens) FILTER (WHERE enabled AND NOT secret AND activation = 'always'), 0)::bigint";
    let by_scope: Vec<ScopeTotal> = resource::selected::<LoreEntries>(caller, Some(campaign), q, filter)?
        .select_only()
        .column(table::Column::Scope)
        .expr_as(Expr::cust("count(*)"), "count")
        .expr_as(Expr::cust("coalesce(sum(tokens), 0)::bigint"), "tokens")
        .expr_as(Expr::cust(always), "always_tokens")
        .group_by(table::Column::Scope)
        .order_by_asc(table::Column::Scope)
        .into_model()
        .all(tx)
        .await?;
    let (count, tokens) = by_scope.iter().fold((0, 0), |(n, t), s| (n + s.count, t + s.tokens));
    Ok(Totals { count, tokens, by_scope })
}

/// The tags of the campaign's lore and how many entries have each, most frequent first.
///
/// # Errors
/// Those of the database.
pub async fn tags(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<(String, i64)>> {
    let rows = sqlx::query(
        "SELECT t AS tag, count(*) AS n FROM lore l, jsonb_array_elements_text(l.tags) AS t \
         WHERE l.tenant_id = $1 AND l.campaign_id = $2 AND (NOT l.secret OR $3) GROUP BY t ORDER BY n DESC, t LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(caller.sees_secrets())
    .bind(TAGS_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("tag")?, row.read("n")?))).collect()
}

/// Suggestions for `associated_id`: names used by lore entries, and the locations, races, professions and factions of
/// NPCs, characters and owners. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn names(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<(String, String)>> {
    let rows = sqlx::query(
        "SELECT scope, name FROM ( \
             SELECT scope, associated_id AS name FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND associated_id IS NOT NULL \
                 AND (NOT secret OR $4) \
             UNION SELECT k.scope, k.name FROM npc n, LATERAL (VALUES ('zone', n.location), ('race', n.race), \
                 ('profession', n.profession), ('faction', n.faction)) AS k (scope, name) \
                 WHERE n.tenant_id = $1 AND n.campaign_id = $2 \
             UNION SELECT k.scope, k.name FROM character n, LATERAL (VALUES ('zone', n.location), ('race', n.race), \
                 ('profession', n.profession)) AS k (scope, name) WHERE n.tenant_id = $1 AND n.campaign_id = $2 \
             UNION SELECT CASE monitored_aspect WHEN 'location' THEN 'zone' ELSE monitored_aspect END, associated_id \
                 FROM owner WHERE tenant_id = $1 AND campaign_id = $2) AS all_names \
         WHERE name <> '' ORDER BY name COLLATE natural_order, scope LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(TAGS_MAX)
    .bind(caller.sees_secrets())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("scope")?, row.read("name")?))).collect()
}

/// A name in links that nothing has, and the entries with such a link.
#[derive(Clone, Debug)]
pub struct Broken {
    pub name: String,
    /// The first five entries.
    pub entries: Vec<Backlink>,
    pub total: i64,
}

/// Links that lead nowhere, among the first 5,000 names in links. For callers who see secrets. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn broken_links(tx: &TenantTx, campaign: Uuid) -> Result<Vec<Broken>> {
    let rows = sqlx::query(
        "WITH names AS MATERIALIZED (SELECT array_agg(target) AS all FROM (SELECT DISTINCT target FROM lore_link \
             WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY target LIMIT 5000) t), \
         known AS MATERIALIZED (SELECT l.nth FROM names, linked_names($2, names.all) l), \
         broken AS MATERIALIZED (SELECT n.name FROM names, unnest(names.all) WITH ORDINALITY AS n (name, nth) \
             WHERE NOT EXISTS (SELECT FROM known WHERE known.nth = n.nth) ORDER BY n.name LIMIT $3) \
         SELECT b.name, count(*) AS total, to_jsonb((array_agg(jsonb_build_object('id', l.id, 'slug', l.slug, \
             'title', l.title) ORDER BY l.title COLLATE natural_order, l.id))[1:5]) AS entries \
         FROM broken b JOIN lore_link k ON k.tenant_id = $1 AND k.campaign_id = $2 AND k.target = b.name \
         JOIN lore l ON l.tenant_id = $1 AND l.id = k.lore_id GROUP BY b.name ORDER BY b.name COLLATE natural_order",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(GROUPS_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let broken = |row: &sqlx::postgres::PgRow| {
        Ok(Broken {
            name: row.read("name")?,
            entries: row.read::<sqlx::types::Json<Vec<Backlink>>>("entries")?.0,
            total: row.read("total")?,
        })
    };
    Ok(stored::each(&rows, broken))
}

/// An entry's title, and the keywords that activate it.
pub struct Waking {
    pub title: String,
    pub keys: Vec<String>,
    pub secondary_keys: Vec<String>,
    pub logic: String,
}

/// The keywords that activate entries, by id. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn waking(tx: &TenantTx, ids: &[Uuid]) -> Result<HashMap<Uuid, Waking>> {
    let rows = sqlx::query(
        "SELECT id, title, CASE activation WHEN 'keyword' THEN keys ELSE '[]' END AS keys, secondary_keys, logic \
         FROM lore WHERE tenant_id = $1 AND id = ANY ($2)",
    )
    .bind(tx.tenant())
    .bind(ids)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let list = |row: &sqlx::postgres::PgRow, name: &str| row.read_json::<Vec<String>>(name);
    rows.iter()
        .map(|row| {
            let (keys, secondary_keys) = (list(row, "keys")?, list(row, "secondary_keys")?);
            Ok((row.read("id")?, Waking { title: row.read("title")?, keys, secondary_keys, logic: row.read("logic")? }))
        })
        .collect()
}

/// Entries with the same title or the same content.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Equals {
    /// What they have in common: `title` or `content`.
    pub same: String,
    /// The first twenty entries.
    pub entries: Vec<Backlink>,
    pub total: i64,
}

/// Groups of duplicates.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Duplicates {
    /// The first hundred groups.
    pub items: Vec<Equals>,
}

/// Entries with the same title or the same content. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn equals(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<Equals>> {
    let rows = sqlx::query(
        "WITH mine AS MATERIALIZED (SELECT id, title_key(title, folded_title) AS name, hashtextextended(content, 0) AS hash FROM lore \
             WHERE tenant_id = $1 AND campaign_id = $2 AND (NOT secret OR $3)), \
         names AS (SELECT name FROM mine GROUP BY name HAVING count(*) > 1 ORDER BY name LIMIT $4), \
         hashes AS (SELECT hash FROM mine GROUP BY hash HAVING count(*) > 1 ORDER BY hash LIMIT $4), \
         found AS ( \
             SELECT 'title' AS same, (array_agg(id ORDER BY id))[1:$5] AS ids, count(*) AS total \
             FROM mine JOIN names USING (name) GROUP BY name \
             UNION ALL \
             SELECT 'content', (array_agg(id ORDER BY id))[1:$5], count(*) FROM mine JOIN hashes USING (hash) GROUP BY hash) \
         SELECT f.same, f.total, e.entries FROM found f CROSS JOIN LATERAL ( \
             SELECT jsonb_agg(jsonb_build_object('id', l.id, 'slug', l.slug, 'title', l.title) ORDER BY l.id) AS entries \
             FROM lore l WHERE l.tenant_id = $1 AND l.id = ANY (f.ids)) e \
         ORDER BY f.same DESC, (e.entries -> 0 ->> 'title') COLLATE natural_order LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(caller.sees_secrets())
    .bind(GROUPS_MAX)
    .bind(GROUP_ENTRIES_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter()
        .map(|row| {
            let entries = serde_json::from_value(row.read::<Value>("entries")?).map_err(Error::internal)?;
            Ok(Equals { same: row.read("same")?, entries, total: row.read("total")? })
        })
        .collect()
}

/// Options of a copy.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
pub struct CopyInput {
    /// The title of the copy. By default the original's title with `(copy)`.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    pub title: Option<String>,
}

/// Copies an entry. The copy gets its own slug.
///
/// # Errors
/// `not_found`.
pub async fn copy(place: &Place<'_>, x: &str, title: Option<String>) -> Result<table::Model> {
    let original =
        resource::find::<LoreEntries>(place.tx, place.caller, Some(&Ref::Id(place.campaign)), &Ref::parse(x)).await?;
    let mut members = resource::plain_columns(&original)?;
    members.retain(|name, _| {
        !READ_ONLY.contains(&name.as_str()) && !["tokens", "slug", "external_ref"].contains(&name.as_str())
    });
    let mut input: LoreInput = read::typed(Value::Object(members))?;
    input.title = title.unwrap_or_else(|| {
        let kept: String = input.title.chars().take(190).collect();
        format!("{kept} (copy)")
    });
    resource::insert::<LoreEntries>(place, input).await
}
