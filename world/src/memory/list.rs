//! Lists memories page by page, filtered by holder, subject and source.

use entity::memory::Source;
use sea_orm::ActiveEnum;
use serde::Deserialize;
use sqlx::AssertSqlSafe;
use time::format_description::well_known::Rfc3339;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{MemoryView, service, whose::Whose};
use base::{error::Result, search::Query, stored};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        budget,
        paging::{self, Items, Page, RawItems, SortKey},
    },
};

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct MemoryFilter {
    /// Only memories about this player character, by id or slug.
    player_id: Option<String>,
    /// Only memories of this NPC or owner, by id or slug.
    holder_id: Option<String>,
    /// `personal`, `private`, `broadcast`, `editor` or `import`.
    #[param(inline)]
    source: Option<Source>,
    broadcast_id: Option<Uuid>,
    turn_id: Option<Uuid>,
}

/// A page of memories, of one holder if it is given. Takes one statement, and one for each name in the filters.
///
/// # Errors
/// `bad_request` for an order that the list does not support.
pub async fn page_of(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    holder_id: Option<Uuid>,
    page: &Page<MemoryFilter>,
) -> Result<Items<MemoryView>> {
    let empty = || Ok(Items::<MemoryView> { items: Vec::new(), next_cursor: None });
    let MemoryFilter { holder_id: holder, player_id: player, .. } = &page.filter;
    let names = (holder.as_deref(), player.as_deref());
    let Some(Whose { holder, player }) = Whose::named(tx, caller, campaign, names).await? else { return empty() };
    if let (Some(path), Some(named)) = (holder_id, holder)
        && path != named
    {
        return empty();
    }
    let holder = holder_id.or(holder);
    let (sign, order) = if page.sort.descending { ("<", "DESC") } else { (">", "ASC") };
    let by = |column: &str, cast: &str| {
        (format!("{column} {order}, m.id {order}"), format!("({column}, m.id) {sign} ($10::{cast}, $11)"))
    };
    let (order, is_after) = match page.sort.key {
        // A parameter that is bound has to occur.
        SortKey::Created => {
            page.after_number()?;
            (format!("m.seq {order}"), format!("m.seq {sign} $10::bigint AND $11::uuid IS NOT NULL"))
        }
        SortKey::Updated => by("m.updated_at", "timestamptz"),
        SortKey::Name => by("m.text COLLATE natural_order", "text"),
        SortKey::Priority | SortKey::Tokens => {
            return Err(paging::bad("sort", "must be `created_at`, `updated_at` or `name` here"));
        }
    };
    let sql = format!(
        "{} WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND ($3::uuid IS NULL OR m.holder_id = $3) \
           AND ($4::uuid IS NULL OR m.subject_id = $4) AND ($5::text IS NULL OR m.source = $5) \
           AND ($6::uuid IS NULL OR m.broadcast_id = $6) AND ($7::uuid IS NULL OR m.turn_id = $7) \
           AND ($8::timestamptz IS NULL OR m.updated_at >= $8) \
           AND ($9::text IS NULL OR m.id IN (SELECT search_memory($2, $9, $13, $14, 10000))) \
           AND ($10::text IS NULL OR {is_after}) ORDER BY {order} LIMIT $12",
        service::SELECT
    );
    let after = page.after.as_ref();
    let query = page.q.as_deref().map(Query::of);
    let rows = sqlx::query(AssertSqlSafe(budget::within(&sql, ["text", "extensions"])))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(holder)
        .bind(player)
        .bind(page.filter.source.map(|source| source.to_value()))
        .bind(page.filter.broadcast_id)
        .bind(page.filter.turn_id)
        .bind(page.updated_since)
        .bind(query.as_ref().map(|query| &query.words))
        .bind(after.map(|a| &a.value))
        .bind(after.map(|a| a.id))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .bind(query.as_ref().map(|query| &query.contains))
        .bind(query.as_ref().map(|query| &query.lacks))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let views = stored::each(&rows, MemoryView::of);
    Ok(page.finish(views, page.has_more(&rows), |memory| key(memory, page.sort.key)))
}

/// The position of a memory in a list of this order.
fn key(memory: &MemoryView, order: SortKey) -> (Uuid, Option<String>) {
    let value = match order {
        SortKey::Created => Some(memory.seq.to_string()),
        SortKey::Priority | SortKey::Tokens => None,
        SortKey::Updated => memory.updated_at.format(&Rfc3339).ok(),
        SortKey::Name => Some(memory.text.clone()),
    };
    (memory.id, value)
}

/// The page as JSON.
///
/// # Errors
/// `internal`.
pub fn written(page: &Page<MemoryFilter>, memories: Items<MemoryView>) -> Result<RawItems> {
    page.serialize_items(memories, |memory| key(memory, page.sort.key), Ok)
}
