//! What is around an entity, for the page about it: its last words, the lore that concerns it, who stands where, and who watches.

use entity::owner::Aspect;
use sea_orm::ActiveEnum;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use uuid::Uuid;

use crate::{
    messages::visible::{VisibleMessage, Which, reader_of, visible_messages},
    overview::Resident,
};
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::resource::scope_key};

/// The most messages of [`last_words`].
const WORDS_MAX: i64 = 6;
/// The most entries of [`lore`] and people of [`at_location`] and [`dependents`].
pub const SHOWN_MAX: usize = 24;

/// The most spellings of locations of a kind that [`at_location`] compares.
const SPELLINGS_MAX: i64 = 1_000;

/// The messages of the newest conversations with an NPC, owner or character, oldest first, as the caller may read them. Only the newest
/// messages of the campaign are looked at. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn last_words(tx: &TenantTx, caller: &Caller, campaign: Uuid, actor: Uuid) -> Result<Vec<VisibleMessage>> {
    visible_messages(tx, campaign, reader_of(caller), Which::OfActor(actor, WORDS_MAX)).await
}

/// A lore entry.
pub struct Known {
    pub slug: String,
    pub title: String,
    pub scope: String,
    /// Whether keywords activate it. Otherwise it is always active.
    pub has_keywords: bool,
    pub is_secret: bool,
}

/// The enabled lore of these scopes (`zone`) and subjects (`gilded_gull`), those that are always active first, then by priority; one
/// more than [`SHOWN_MAX`] at most. Takes one round trip, or none without scopes.
///
/// # Errors
/// Those of the database.
pub async fn lore(tx: &TenantTx, caller: &Caller, campaign: Uuid, scopes: &[(&str, &str)]) -> Result<Vec<Known>> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let (kinds, keys): (Vec<&str>, Vec<&str>) = scopes.iter().copied().unzip();
    let rows = sqlx::query(
        "SELECT l.slug, l.title, l.scope, l.activation = 'keyword' AS has_keywords, l.secret \
         FROM unnest($3::text[], $4::text[]) AS wanted (scope, key), LATERAL ( \
           SELECT slug, title, scope, activation, secret, priority, id FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND enabled \
             AND scope = wanted.scope AND associated_key = wanted.key AND (NOT secret OR $5) \
           ORDER BY activation, priority DESC, id LIMIT $6) AS l \
         ORDER BY l.activation, l.priority DESC, l.id LIMIT $6",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(kinds)
    .bind(keys)
    .bind(caller.sees_secrets())
    .bind(one_more())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let known = |row: &PgRow| {
        Ok(Known {
            slug: row.read("slug")?,
            title: row.read("title")?,
            scope: row.read("scope")?,
            has_keywords: row.read("has_keywords")?,
            is_secret: row.read("secret")?,
        })
    };
    Ok(stored::each(&rows, known))
}

/// The most rows that are read: one more than are shown, so that a page knows whether there are others.
fn one_more() -> i64 {
    i64::try_from(SHOWN_MAX + 1).unwrap_or(i64::MAX)
}

fn resident(row: &PgRow) -> Result<Resident> {
    Ok(Resident { kind: row.read("kind")?, slug: row.read("slug")?, name: row.read("name")? })
}

/// A location as one of those who name it spells it, and the characters, NPCs and scenes there, however they spell it; of each kind one
/// more than [`SHOWN_MAX`] at most, and nobody if the location is not among the first 1,000 of each kind. Takes two round trips.
///
/// # Errors
/// Those of the database.
pub async fn at_location(tx: &TenantTx, campaign: Uuid, location: &str) -> Result<(Option<String>, Vec<Resident>)> {
    const TABLES: [(&str, &str, &str); 3] = [
        ("characters", "character", "location"),
        ("npcs", "npc", "location"),
        // A scene without a location is at the location that it is called.
        ("scenes", "scene", "coalesce(nullif(location, ''), name)"),
    ];
    let spelled = TABLES.map(|(_, table, place)| {
        format!(
            "(SELECT DISTINCT {place} AS place FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 AND {place} <> '' \
              LIMIT {SPELLINGS_MAX})"
        )
    });
    let all = sqlx::query_scalar::<_, String>(AssertSqlSafe(spelled.join(" UNION ")))
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let key = scope_key(location);
    let spellings: Vec<String> = all.into_iter().filter(|known| scope_key(known) == key).collect();
    let Some(spelled) = spellings.first().cloned() else { return Ok((None, Vec::new())) };
    let there = TABLES.map(|(kind, table, place)| {
        format!(
            "(SELECT '{kind}' AS kind, slug, name FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 AND {place} = ANY ($3) \
              ORDER BY name COLLATE natural_order, id LIMIT $4)"
        )
    });
    let rows = sqlx::query(AssertSqlSafe(there.join(" UNION ALL ")))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(spellings)
        .bind(one_more())
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok((Some(spelled), stored::each(&rows, resident)))
}

/// The owners that watch over these aspects and subjects: `(Aspect::Location, "gilded_gull")`. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn watchers(tx: &TenantTx, campaign: Uuid, subjects: &[(Aspect, &str)]) -> Result<Vec<Resident>> {
    let (aspects, keys): (Vec<String>, Vec<String>) =
        subjects.iter().map(|(aspect, subject)| (aspect.to_value(), scope_key(subject))).unzip();
    let rows = sqlx::query(
        "SELECT 'owners' AS kind, slug, name FROM owner WHERE tenant_id = $1 AND campaign_id = $2 \
           AND (monitored_aspect, associated_key) IN (SELECT * FROM unnest($3::text[], $4::text[])) ORDER BY name COLLATE natural_order, id LIMIT $5",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(aspects)
    .bind(keys)
    .bind(one_more())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, resident))
}

/// The NPCs of an owner. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn dependents(tx: &TenantTx, owner: Uuid) -> Result<Vec<Resident>> {
    let rows = sqlx::query(
        "SELECT 'npcs' AS kind, n.slug, n.name FROM npc_owner o JOIN npc n ON n.tenant_id = o.tenant_id AND n.id = o.npc_id \
         WHERE o.tenant_id = $1 AND o.owner_id = $2 ORDER BY o.npc_id LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(owner)
    .bind(one_more())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, resident))
}

/// The owners with these ids; one more than [`SHOWN_MAX`] at most. Takes one round trip, or none without ids.
///
/// # Errors
/// Those of the database.
pub async fn owners(tx: &TenantTx, ids: &[Uuid]) -> Result<Vec<entity::owner::Model>> {
    use sea_orm::{EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::ExprTrait};
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let col = edge::http::resource::col;
    let named = col("tenant_id").eq(tx.tenant()).and(col("id").is_in(ids.iter().copied()));
    Ok(entity::owner::Entity::find()
        .filter(named)
        .order_by_asc(entity::owner::Column::Id)
        .limit((SHOWN_MAX + 1) as u64)
        .all(tx)
        .await?)
}
