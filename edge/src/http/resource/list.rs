//! Lists of rows: filters, search, order and pages.

use sea_orm::{
    ConnectionTrait, EntityTrait, Order, QueryFilter, QueryOrder, QueryResult, QuerySelect, Select,
    sea_query::{Expr, ExprTrait},
};
use serde::de::DeserializeOwned;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{Ref, Resource, campaign_named, col, id_of, shown, visible};
use crate::{
    caller::Caller,
    http::{
        Answer, budget,
        paging::{self, Items, Page, RawItems, SortKey},
    },
    state::Edge,
};
use base::{error::Result, search::Query};
use db::tenancy::{SingleReads, TenantTx};

/// GET of a list. Takes one round trip, and another to find the campaign if it is named by its slug or has no rows.
///
/// # Errors
/// `not_found` for the campaign, `bad_request` for the parameters.
pub async fn list<R: Resource>(
    app: &Edge,
    caller: &Caller,
    c: Option<&str>,
    page: &Page<R::Filter>,
) -> Result<Answer<RawItems>> {
    let db = SingleReads::new(&app.pool, caller.tenant_id());
    let named = c.map(Ref::parse);
    let campaign = match &named {
        Some(Ref::Id(id)) => Some(*id),
        Some(slug) => Some(id_of(campaign_named(caller, slug).filter(db.condition()), &db).await?),
        None => None,
    };
    let select = selected::<R>(caller, campaign, page.q.as_deref(), &page.filter)?.filter(db.condition());
    let rows = page_of::<R>(&db, select, page).await?;
    if let (Some(id @ Ref::Id(_)), true) = (&named, rows.items.is_empty()) {
        id_of(campaign_named(caller, id).filter(db.condition()), &db).await?;
    }
    let items = page.serialize_items(rows, |row| key::<R>(row, page.sort.key), |row| Ok(shown::<R>(row, caller)))?;
    Ok(Answer::ok(items))
}

/// A page of rows. The caller must already be known to see the campaign.
///
/// # Errors
/// `bad_request` for an invalid filter.
pub async fn find_page<R: Resource>(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Option<Uuid>,
    page: &Page<R::Filter>,
) -> Result<Items<R::Model>> {
    page_of::<R>(tx, selected::<R>(caller, campaign, page.q.as_deref(), &page.filter)?, page).await
}

async fn page_of<R: Resource>(
    db: &impl ConnectionTrait,
    select: Select<R::Entity>,
    page: &Page<R::Filter>,
) -> Result<Items<R::Model>> {
    let (rows, is_cut) = budget::raw(db, paged::<R>(select, page)?).await?;
    let Items { items, next_cursor } = page.finish(rows, is_cut, |row| key_of_raw::<R>(row, page.sort.key));
    Ok(Items { items: budget::models(&items), next_cursor })
}

/// The position of a row in a list of this order. Works even if the rest of the row cannot be read.
fn key_of_raw<R: Resource>(row: &QueryResult, order: SortKey) -> (Uuid, Option<String>) {
    let number = |column| row.try_get::<i32>("", column).ok().map(|n| n.to_string());
    let value = match order {
        SortKey::Created if R::IS_NUMBERED => row.try_get::<i64>("", "seq").ok().map(|seq| seq.to_string()),
        SortKey::Created => None,
        SortKey::Updated => {
            row.try_get::<OffsetDateTime>("", "updated_at").ok().and_then(|time| time.format(&Rfc3339).ok())
        }
        SortKey::Name => row.try_get::<String>("", R::LABEL).ok(),
        SortKey::Priority => number("priority"),
        SortKey::Tokens => number("tokens"),
    };
    (row.try_get("", "id").unwrap_or_default(), value)
}

/// The position of a row in a list of this order.
fn key<R: Resource>(row: &R::Model, order: SortKey) -> (Uuid, Option<String>) {
    let stamp = R::stamp(row);
    let value = match order {
        SortKey::Created if !R::IS_NUMBERED => None,
        SortKey::Updated => stamp.updated_at.format(&Rfc3339).ok(),
        SortKey::Name => Some(stamp.label.to_owned()),
        SortKey::Created | SortKey::Priority | SortKey::Tokens => R::number(row, order).map(|n| n.to_string()),
    };
    (stamp.id, value)
}

/// The rows of a campaign that the caller may see and that match the search text and the filters.
///
/// # Errors
/// `bad_request` for an invalid value.
pub fn selected<R: Resource>(
    caller: &Caller,
    campaign: Option<Uuid>,
    q: Option<&str>,
    filter: &R::Filter,
) -> Result<Select<R::Entity>> {
    let select = R::filter(visible::<R>(caller, campaign.map(Ref::Id).as_ref()), filter)?;
    let Some(q) = q else { return Ok(select) };
    Ok(match (R::SEARCH, campaign) {
        (Some(function), Some(campaign)) => {
            let Query { words, contains, lacks } = Query::of(q);
            select.filter(Expr::cust_with_values(
                format!("id IN (SELECT {function}($1, $2, $3, $4, 10000))"),
                [campaign.into(), words.into(), contains.into(), lacks.into()] as [sea_orm::Value; 4],
            ))
        }
        _ => {
            let columns: &[&str] = if R::HAS_SLUG { &[R::LABEL, "slug"] } else { &[R::LABEL] };
            select.filter(Expr::cust_with_values(paging::contains(1, columns), [paging::pattern(q)]))
        }
    })
}

/// One page of a select, and one extra row.
///
/// # Errors
/// `bad_request` for an order that the kind does not support.
pub fn paged<R: Resource>(mut select: Select<R::Entity>, page: &Page<R::Filter>) -> Result<Select<R::Entity>> {
    if let Some(since) = page.updated_since {
        select = select.filter(col("updated_at").gte(since));
    }
    if !R::SORTS.contains(&page.sort.key) {
        return Err(paging::no_order(R::SORTS));
    }
    let by_name = format!("{} COLLATE natural_order", R::LABEL);
    let (column, value_type) = match page.sort.key {
        SortKey::Created if R::IS_NUMBERED => return numbered(select, page),
        SortKey::Created => ("id", "uuid"),
        SortKey::Updated => ("updated_at", "timestamptz"),
        SortKey::Name => (by_name.as_str(), "text"),
        SortKey::Priority => ("priority", "int"),
        SortKey::Tokens => ("tokens", "int"),
    };
    if let Some(after) = &page.after {
        let sign = if page.sort.descending { "<" } else { ">" };
        let value = after.value.clone().unwrap_or_else(|| after.id.to_string());
        select = select.filter(Expr::cust_with_values(
            format!("({column}, id) {sign} ($1::{value_type}, $2)"),
            [sea_orm::Value::from(value), sea_orm::Value::from(after.id)],
        ));
    }
    let order = if page.sort.descending { Order::Desc } else { Order::Asc };
    Ok(select.order_by(Expr::cust(column.to_owned()), order.clone()).order_by(col("id"), order).limit(page.limit + 1))
}

/// One page in the order in which rows were written, and one extra row.
fn numbered<E: EntityTrait, F: DeserializeOwned>(mut select: Select<E>, page: &Page<F>) -> Result<Select<E>> {
    let seq = col("seq");
    if let Some(after) = page.after_number()? {
        select = select.filter(if page.sort.descending { seq.lt(after) } else { seq.gt(after) });
    }
    let order = if page.sort.descending { Order::Desc } else { Order::Asc };
    Ok(select.order_by(col("seq"), order).limit(page.limit + 1))
}
