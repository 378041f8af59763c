//! Listing, reading, creating, patching and deleting rows of the world, the same for every kind.
//!
//! Each kind implements [`Resource`] and declares its routes with `world_routes!`. This file does the rest: paging,
//! slugs, ETags, merge patches, idempotency, tenancy. The rules of a kind are not decided here.

use std::{fmt::Write as _, sync::PoisonError};

use actix_web::{HttpRequest, HttpResponse};
use entity::shapes::Extensions;
use sea_orm::{
    Condition, EntityTrait, FromQueryResult, Iden, Iterable, Order, QueryFilter, QueryOrder, QueryResult, QuerySelect,
    Select,
    sea_query::{Alias, Expr, ExprTrait, Query, extension::postgres::PgExpr},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Body, Reply, bounds, budget,
    etag::Expected,
    paging::{self, Items, Page, SortKey},
    patch, validate,
};
use crate::{caller::Caller, state::Edge};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// A path segment that names a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ref {
    Id(Uuid),
    Slug(String),
}

impl Ref {
    /// Reads an id or a slug.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Uuid::try_parse(text).map_or_else(|_| Self::Slug(text.to_owned()), Self::Id)
    }

    /// The condition that a column holds this row's id. `by_slug` is a query for the ids of the slug `$1` in the
    /// campaign of the row.
    #[must_use]
    pub fn is_in(&self, column: &str, by_slug: &str) -> Expr {
        match self {
            Self::Id(id) => col(column).eq(*id),
            Self::Slug(slug) => {
                Expr::cust_with_values(format!("{column} IN ({by_slug})"), [sea_orm::Value::from(slug.as_str())])
            }
        }
    }

    fn matches<R: Resource>(&self) -> Expr {
        match self {
            Self::Id(value) => col("id").eq(*value),
            Self::Slug(value) if R::HAS_SLUG => col("slug").eq(value.as_str()),
            Self::Slug(_) => col("id").is_null(),
        }
    }
}

/// Values that every row has.
pub struct Stamp<'a> {
    pub id: Uuid,
    pub version: i64,
    pub label: &'a str,
    pub updated_at: OffsetDateTime,
}

/// The place where a row is written, for checks that look at related rows.
pub struct Place<'a> {
    pub tx: &'a TenantTx,
    pub campaign: Uuid,
    pub caller: &'a Caller,
}

/// One kind of row of the world.
pub trait Resource: Sized + 'static {
    /// The table. Messages use it as the name of the kind.
    const TABLE: &'static str;
    /// The column with a row's name or title: lists sort by it and search it.
    const LABEL: &'static str = "name";
    /// Whether rows belong to a campaign (all kinds but campaigns themselves).
    const IN_CAMPAIGN: bool = true;
    /// Whether the kind shares the slugs of characters, NPCs and owners.
    const IS_ACTOR: bool = false;
    /// Whether rows have a slug.
    const HAS_SLUG: bool = true;
    /// Members of the view that a client cannot write, in addition to those of every row.
    const READ_ONLY: &'static [&'static str] = &[];
    /// Members of the view that are not shown to a player's token.
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &[];
    /// The database function that searches rows under row security. If there is none, the label is searched.
    const SEARCH: Option<&'static str> = None;

    /// The member that refers to actors by id or slug, and the kinds it may refer to.
    const NAMES_ACTORS: Option<(&'static str, &'static [&'static str])> = None;

    /// The orders that the list supports; each has an index.
    const SORTS: &'static [SortKey] = &[SortKey::Created, SortKey::Updated, SortKey::Name];

    type Entity: EntityTrait<Model = Self::Model>;
    type Model: FromQueryResult + Send + Sync;
    type View: Serialize + From<Self::Model>;
    type Input: Serialize + DeserializeOwned + ToSchema + garde::Validate<Context = ()>;
    type Filter: DeserializeOwned;

    fn stamp(model: &Self::Model) -> Stamp<'_>;

    /// The value of a numeric column that the list can be sorted by.
    fn number(_: &Self::Model, _: SortKey) -> Option<i32> {
        None
    }

    /// Leaves out rows that the caller may not see.
    fn restrict(select: Select<Self::Entity>, _: &Caller) -> Select<Self::Entity> {
        select
    }

    /// Applies the list's filters.
    ///
    /// # Errors
    /// `bad_request` for an invalid value.
    fn filter(select: Select<Self::Entity>, _: &Self::Filter) -> Result<Select<Self::Entity>> {
        Ok(select)
    }

    /// A changed row in full, as a read of it would answer. Lists may show less.
    fn whole(place: &Place<'_>, model: Self::Model) -> impl Future<Output = Result<Value>> {
        let whole = view::<Self>(model, place.caller);
        async { whole }
    }

    /// Checks whether a row may be deleted, beyond what foreign keys check.
    ///
    /// # Errors
    /// `referenced`.
    fn may_delete(_: &TenantTx, _: &Self::Model) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Deletes a row that the transaction has locked. Returns the turns that were asked to stop because of it.
    ///
    /// # Errors
    /// `referenced`.
    fn delete(tx: &TenantTx, id: Uuid) -> impl Future<Output = Result<Vec<Uuid>>> {
        delete_row::<Self>(tx, id)
    }

    /// Rules for what a client sends that do not apply to what is already stored.
    ///
    /// # Errors
    /// `validation_failed`.
    fn check_sent(_: &Value) -> Result<()> {
        Ok(())
    }

    /// Members that a patch does not carry over, because nobody set them and they depend on something the patch
    /// changes. `columns` sees them as absent.
    fn derived(_before: &Value, _changes: &Value) -> &'static [&'static str] {
        &[]
    }

    /// Fixes an older content of a row before it is restored: rows that it refers to may be gone.
    fn before_restore(_: &Place<'_>, _: &mut Map<String, Value>) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// The columns in which a valid input is stored: references are resolved and derived columns filled in.
    fn columns(place: &Place<'_>, input: Self::Input) -> impl Future<Output = Result<Map<String, Value>>>;

    /// Like [`Self::columns`], for an input whose actors are ids that are known to exist. The caller checks them for
    /// many rows at once.
    fn columns_of_known(place: &Place<'_>, input: Self::Input) -> impl Future<Output = Result<Map<String, Value>>> {
        Self::columns(place, input)
    }
}

/// Members of every row that a client cannot write.
pub const READ_ONLY: &[&str] = &["id", "campaign_id", "version", "created_at", "updated_at"];

/// A column by name.
pub fn col(name: &str) -> Expr {
    Expr::col(Alias::new(name))
}

/// Restricts a select to one campaign, given by id or slug, if the caller's token allows it.
fn in_campaign<E: EntityTrait>(select: Select<E>, caller: &Caller, campaign: &Ref) -> Select<E> {
    let named = match campaign {
        Ref::Id(id) => col("id").eq(*id),
        Ref::Slug(slug) => col("slug").eq(slug.as_str()),
    };
    // The campaign is looked up even by id: some rows of a deleted campaign may still exist.
    let found = Query::select()
        .column(Alias::new("id"))
        .from(Alias::new("campaign"))
        .and_where(col("tenant_id").eq(caller.tenant_id()))
        .and_where(named)
        .to_owned();
    let select = select.filter(col("campaign_id").in_subquery(found));
    let select = match campaign {
        // This lets PostgreSQL choose the right index.
        Ref::Id(id) => select.filter(col("campaign_id").eq(*id)),
        Ref::Slug(_) => select,
    };
    match caller.campaign {
        Some(only) => select.filter(col("campaign_id").eq(only)),
        None => select,
    }
}

fn base<R: Resource>(caller: &Caller, campaign: Option<&Ref>) -> Select<R::Entity> {
    let select = R::Entity::find().filter(col("tenant_id").eq(caller.tenant_id()));
    let select = match (campaign, caller.campaign) {
        (Some(campaign), _) => in_campaign(select, caller, campaign),
        (None, Some(only)) => select.filter(col("id").eq(only)),
        (None, None) => select,
    };
    R::restrict(select, caller)
}

/// The id of a campaign the caller may see.
///
/// # Errors
/// `not_found`.
pub async fn campaign_id(tx: &TenantTx, caller: &Caller, campaign: &Ref) -> Result<Uuid> {
    let (id, slug) = match campaign {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (None, Some(slug.as_str())),
    };
    let row = sqlx::query("SELECT id FROM campaign WHERE tenant_id = $1 AND (id = $2 OR slug = $3)")
        .bind(tx.tenant())
        .bind(id)
        .bind(slug)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.map(|row| row.read::<Uuid>("id"))
        .transpose()?
        .filter(|id| caller.campaign.is_none_or(|only| only == *id))
        .ok_or_else(|| Error::not_found("campaign"))
}

/// One row.
///
/// # Errors
/// `not_found`, also if the row exists but the caller may not see it.
pub async fn find<R: Resource>(tx: &TenantTx, caller: &Caller, campaign: Option<&Ref>, x: &Ref) -> Result<R::Model> {
    base::<R>(caller, campaign).filter(x.matches::<R>()).one(tx).await?.ok_or_else(|| Error::not_found(R::TABLE))
}

/// Like [`find`], and locks the row until the transaction ends.
///
/// # Errors
/// `not_found`, also if the row exists but the caller may not see it.
pub async fn hold<R: Resource>(tx: &TenantTx, caller: &Caller, campaign: Option<&Ref>, x: &Ref) -> Result<R::Model> {
    let select = base::<R>(caller, campaign).filter(x.matches::<R>()).lock_exclusive();
    select.one(tx).await?.ok_or_else(|| Error::not_found(R::TABLE))
}

/// The row as the caller may see it.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn view<R: Resource>(model: R::Model, caller: &Caller) -> Result<Value> {
    let mut value = serde_json::to_value(R::View::from(model)).map_err(Error::internal)?;
    if let (true, Value::Object(members)) = (caller.is_player(), &mut value) {
        for name in R::HIDDEN_FROM_PLAYERS {
            members.remove(*name);
        }
    }
    Ok(value)
}

/// GET of one row. Takes three round trips (begin with settings, select, end).
///
/// # Errors
/// `not_found`.
pub async fn get<R: Resource>(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    c: Option<&str>,
    x: &str,
) -> Result<HttpResponse> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let model = find::<R>(&tx, caller, c.map(Ref::parse).as_ref(), &Ref::parse(x)).await?;
    let version = R::stamp(&model).version;
    let reply =
        if caller.is_player() { Reply::ok(&view::<R>(model, caller)?)? } else { Reply::ok(&R::View::from(model))? };
    Ok(reply.versioned(version).unless_known(request))
}

/// GET of a list.
///
/// # Errors
/// `not_found` for the campaign, `bad_request` for the parameters.
pub async fn list<R: Resource>(app: &Edge, caller: &Caller, c: Option<&str>, page: &Page<R::Filter>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = match c {
        Some(c) => Some(campaign_id(&tx, caller, &Ref::parse(c)).await?),
        None => None,
    };
    let rows = find_page::<R>(&tx, caller, campaign, page).await?;
    Reply::ok(&page.written(rows, |row| key::<R>(row, page.sort.key), |row| view::<R>(row, caller))?)
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
    let select = selected::<R>(caller, campaign, page.q.as_deref(), &page.filter)?;
    let (rows, is_cut) = budget::raw(tx, paged::<R>(select, page)?).await?;
    let Items { items, next_cursor } = page.finish(rows, is_cut, |row| key_of_raw::<R>(row, page.sort.key));
    Ok(Items { items: budget::models(&items), next_cursor })
}

/// The position of a row in a list of this order. Works even if the rest of the row cannot be read.
fn key_of_raw<R: Resource>(row: &QueryResult, order: SortKey) -> (Uuid, Option<String>) {
    let number = |column| row.try_get::<i32>("", column).ok().map(|n| n.to_string());
    let value = match order {
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
        SortKey::Created => None,
        SortKey::Updated => stamp.updated_at.format(&Rfc3339).ok(),
        SortKey::Name => Some(stamp.label.to_owned()),
        SortKey::Priority | SortKey::Tokens => R::number(row, order).map(|n| n.to_string()),
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
    let select = R::filter(base::<R>(caller, campaign.map(Ref::Id).as_ref()), filter)?;
    let Some(q) = q else { return Ok(select) };
    Ok(match (R::SEARCH, campaign) {
        (Some(function), Some(campaign)) => select.filter(Expr::cust_with_values(
            format!("id IN (SELECT {function}($1, $2, 10000))"),
            [sea_orm::Value::from(campaign), sea_orm::Value::from(q)],
        )),
        _ => {
            let pattern = paging::pattern(q);
            let mut holds = Condition::any().add(col(R::LABEL).ilike(pattern.as_str()));
            if R::HAS_SLUG {
                holds = holds.add(col("slug").ilike(pattern));
            }
            select.filter(holds)
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
    let (column, value_type) = match page.sort.key {
        SortKey::Created => ("id", "uuid"),
        SortKey::Updated => ("updated_at", "timestamptz"),
        SortKey::Name => (R::LABEL, "text"),
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
    Ok(select.order_by(col(column), order.clone()).order_by(col("id"), order).limit(page.limit + 1))
}

/// POST of a new row.
///
/// # Errors
/// `validation_failed`, `slug_taken`, `not_found` for the campaign.
pub async fn create<R: Resource>(
    app: &Edge,
    caller: &Caller,
    c: Option<&str>,
    path: &str,
    body: Body<R::Input>,
) -> Result<Reply> {
    let input = serde_json::to_value(&body.value).map_err(Error::internal)?;
    R::check_sent(&input)?;
    validate::check(&body.value)?;
    bounds::check::<R::Input>(&input)?;
    super::write(app, caller, body.idempotency.as_ref(), async |tx| {
        let campaign = match c {
            Some(c) => campaign_id(tx, caller, &Ref::parse(c)).await?,
            None if caller.campaign.is_some() => {
                return Err(Error::new(Code::Forbidden, "This token is for one campaign only."));
            }
            None => Uuid::now_v7(),
        };
        app.limits.check_rows(tx, caller, R::TABLE).await?;
        let model = insert::<R>(&Place { tx, campaign, caller }, super::body::typed(input.clone())?).await?;
        let stamp = R::stamp(&model);
        let (location, version) = (format!("{path}/{}", stamp.id), stamp.version);
        Reply::created(location, version, &view::<R>(model, caller)?)
    })
    .await
}

/// Inserts a valid input. The slug is derived from the label unless one is given. When a campaign is inserted, its id
/// is `place.campaign`.
///
/// # Errors
/// `slug_taken`; `validation_failed` for references.
pub async fn insert<R: Resource>(place: &Place<'_>, input: R::Input) -> Result<R::Model> {
    let mut columns = R::columns(place, input).await?;
    let is_derived = R::HAS_SLUG && columns.get("slug").is_none_or(Value::is_null);
    if is_derived {
        let label = columns.get(R::LABEL).and_then(Value::as_str).unwrap_or_default().to_owned();
        columns.insert("slug".to_owned(), free_slug::<R>(place, &label).await?.into());
    }
    let id = if R::IN_CAMPAIGN { Uuid::now_v7() } else { place.campaign };
    columns.insert("id".to_owned(), id.to_string().into());
    columns.insert("tenant_id".to_owned(), place.tx.tenant().to_string().into());
    if R::IN_CAMPAIGN {
        columns.insert("campaign_id".to_owned(), place.campaign.to_string().into());
    }
    let names = quoted(columns.keys(), "");
    let sql = format!(
        "INSERT INTO {0} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::\"{0}\", $1) RETURNING {1}",
        R::TABLE,
        returning::<R>("")
    );
    let row =
        sqlx::query(AssertSqlSafe(sql)).bind(Value::Object(columns)).fetch_one(&mut *place.tx.connection().await).await;
    let row = row.map_err(|error| if is_derived { Error::from(error).of_derived_slug() } else { error.into() })?;
    Ok(R::Model::from_query_result(&row.into(), "")?)
}

/// PATCH of one row: locks it, merges, validates the whole document, writes it.
///
/// # Errors
/// `precondition_failed`, `validation_failed`, `not_found`.
pub async fn patch<R: Resource>(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    c: Option<&str>,
    x: &str,
    body: Body<Value>,
) -> Result<Reply> {
    change::<R>(app, caller, &Expected::by(request), c, x, body.value).await
}

/// Like [`patch()`], without a request: takes the expected version and the patch.
///
/// # Errors
/// Those of [`patch()`].
pub async fn change<R: Resource>(
    app: &Edge,
    caller: &Caller,
    expected: &Expected,
    c: Option<&str>,
    x: &str,
    changes: Value,
) -> Result<Reply> {
    R::check_sent(&changes)?;
    super::write(app, caller, None, async |tx| {
        let current = hold::<R>(tx, caller, c.map(Ref::parse).as_ref(), &Ref::parse(x)).await?;
        let stamp = R::stamp(&current);
        let (id, version) = (stamp.id, stamp.version);
        expected.check(version)?;
        let shown = serde_json::to_value(R::View::from(current)).map_err(Error::internal)?;
        let campaign = shown.get("campaign_id").and_then(Value::as_str).and_then(|c| c.parse().ok()).unwrap_or(id);
        let read_only: Vec<_> = READ_ONLY.iter().chain(R::READ_ONLY).copied().collect();
        let bytes_before = bounds::size(&shown);
        let derived = R::derived(&shown, &changes);
        let mut document = patch::apply(shown, changes.clone(), &read_only)?;
        if let Value::Object(members) = &mut document {
            members.retain(|name, _| !derived.contains(&name.as_str()));
        }
        bounds::check_patched::<R::Input>(&document, &changes, bytes_before)?;
        let input: R::Input = bounds::typed(document)?;
        validate::check(&input)?;
        let place = Place { tx, campaign, caller };
        let model = update::<R>(&place, id, input).await?;
        let version = R::stamp(&model).version;
        Ok(Reply::ok(&R::whole(&place, model).await?)?.versioned(version))
    })
    .await
}

/// Writes a valid input over a row that the transaction has locked.
///
/// # Errors
/// `slug_taken`; `validation_failed` for references.
pub async fn update<R: Resource>(place: &Place<'_>, id: Uuid, input: R::Input) -> Result<R::Model> {
    let columns = R::columns(place, input).await?;
    write_columns::<R>(place, id, columns).await
}

/// Writes validated columns over a row.
///
/// # Errors
/// `slug_taken`; `validation_failed` for references.
pub async fn write_columns<R: Resource>(
    place: &Place<'_>,
    id: Uuid,
    mut columns: Map<String, Value>,
) -> Result<R::Model> {
    if columns.get("slug").is_none_or(Value::is_null) {
        columns.remove("slug");
    }
    let sql = format!(
        "UPDATE {0} t SET ({1}) = ROW ({2}) FROM jsonb_populate_record(NULL::\"{0}\", $1) r \
         WHERE t.tenant_id = $2 AND t.id = $3 RETURNING {3}",
        R::TABLE,
        quoted(columns.keys(), ""),
        quoted(columns.keys(), "r."),
        returning::<R>("t.")
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(Value::Object(columns))
        .bind(place.tx.tenant())
        .bind(id)
        .fetch_one(&mut *place.tx.connection().await)
        .await?;
    Ok(R::Model::from_query_result(&row.into(), "")?)
}

/// DELETE of one row.
///
/// # Errors
/// `precondition_failed`, `referenced`, `not_found`.
pub async fn delete<R: Resource>(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    c: Option<&str>,
    x: &str,
) -> Result<Reply> {
    remove::<R>(app, caller, &Expected::by(request), c, x).await
}

/// Like [`delete`], without a request.
///
/// # Errors
/// Those of [`delete`].
pub async fn remove<R: Resource>(
    app: &Edge,
    caller: &Caller,
    expected: &Expected,
    c: Option<&str>,
    x: &str,
) -> Result<Reply> {
    let stopped = std::sync::Mutex::new(Vec::new());
    let reply = super::write(app, caller, None, async |tx| {
        let current = hold::<R>(tx, caller, c.map(Ref::parse).as_ref(), &Ref::parse(x)).await?;
        let stamp = R::stamp(&current);
        expected.check(stamp.version)?;
        R::may_delete(tx, &current).await?;
        let turns = R::delete(tx, stamp.id).await?;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = turns;
        Ok(Reply::no_content())
    })
    .await
    .map_err(Error::of_delete)?;
    // Other servers learn of it from the database.
    let stopped = stopped.into_inner().unwrap_or_else(PoisonError::into_inner);
    for turn in stopped {
        app.cancel(turn);
    }
    Ok(reply)
}

async fn delete_row<R: Resource>(tx: &TenantTx, id: Uuid) -> Result<Vec<Uuid>> {
    let sql = format!("DELETE FROM {} WHERE tenant_id = $1 AND id = $2", R::TABLE);
    sqlx::query(AssertSqlSafe(sql)).bind(tx.tenant()).bind(id).execute(&mut *tx.connection().await).await?;
    // A deleted actor's turns stop. A plan for it is not cancelled: it notices by itself and reports that.
    let turns = "UPDATE turn SET cancel_requested = true \
        WHERE tenant_id = $1 AND entity_id = $2 AND kind <> 'planner' AND (status = 'running' OR status = 'queued') RETURNING id";
    let rows = sqlx::query(turns).bind(tx.tenant()).bind(id).fetch_all(&mut *tx.connection().await).await?;
    rows.iter().map(|row| row.read("id")).collect()
}

/// Quotes column names. All of them are ours: they come from serde names of our own types and from entities.
fn quoted<'a>(names: impl Iterator<Item = &'a String>, prefix: &str) -> String {
    let mut out = String::new();
    for name in names {
        let _ = write!(out, "{}{prefix}\"{name}\"", if out.is_empty() { "" } else { ", " });
    }
    out
}

/// The columns of a kind's entity, each after `prefix`.
#[must_use]
pub fn returning<R: Resource>(prefix: &str) -> String {
    let names: Vec<String> =
        <R::Entity as EntityTrait>::Column::iter().map(|c| format!("{prefix}\"{}\"", Iden::unquoted(&c))).collect();
    names.join(", ")
}

/// A slug made from `label` that is free in its namespace. It stays reserved until the transaction ends. Takes one
/// statement.
///
/// # Errors
/// `slug_taken` if the first 99 candidates are taken.
pub async fn free_slug<R: Resource>(place: &Place<'_>, label: &str) -> Result<String> {
    let joint = if R::IN_CAMPAIGN { "_" } else { "-" };
    let base = match slug_of(label, joint) {
        // A slug that looks like an id could never be found as a slug.
        Some(slug) if Uuid::try_parse(&slug).is_ok() => format!("{}{joint}{slug}", R::TABLE),
        Some(slug) => slug,
        None => R::TABLE.to_owned(),
    };
    let candidates: Vec<String> =
        std::iter::once(base.clone()).chain((2..=99).map(|n| format!("{base}{joint}{n}"))).collect();
    let row = sqlx::query("SELECT free_slug($1, $2, $3, $4) AS slug")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(if R::IS_ACTOR { "actor_slug" } else { R::TABLE })
        .bind(&candidates)
        .fetch_one(&mut *place.tx.connection().await)
        .await?;
    row.read::<Option<String>>("slug")?
        .ok_or_else(|| Error::new(Code::SlugTaken, "Give a slug: all slugs that are made from this name are taken."))
}

/// Makes a slug from a name: lower case ASCII, with `joint` in place of everything else. None if nothing is left.
#[must_use]
pub fn slug_of(text: &str, joint: &str) -> Option<String> {
    slug_within(text, joint, 56)
}

fn slug_within(text: &str, joint: &str, bytes_max: usize) -> Option<String> {
    let mut slug = String::new();
    for c in deunicode::deunicode(text).chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with(joint) {
            slug.push_str(joint);
        }
        if slug.len() >= bytes_max {
            break;
        }
    }
    let slug = slug.trim_end_matches(joint).to_owned();
    (!slug.is_empty()).then_some(slug)
}

/// The form in which locations, races, professions and factions are compared: a slug, so that case and spaces do not
/// matter.
#[must_use]
pub fn scope_key(text: &str) -> String {
    slug_within(text, "_", usize::MAX).unwrap_or_else(|| text.trim().to_lowercase())
}

/// The columns of an input as they serialise, for kinds whose input has the same members as their table.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn plain_columns(input: &impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(input).map_err(Error::internal)? {
        Value::Object(columns) => Ok(columns),
        _ => Ok(Map::new()),
    }
}

/// An empty set of clients' own keys.
#[must_use]
pub fn no_extensions() -> Extensions {
    Extensions::new()
}

/// Defines the five routes of a kind. Tags and paths are literals because actix and utoipa read them at compile time.
#[macro_export]
macro_rules! world_routes {
    ($resource:ty, $input:ty, $view:ty, $filter:ty, $one:literal, $many:literal, $list:literal, $item:literal) => {
        $crate::world_routes_but_delete!($resource, $input, $view, $filter, $one, $many, $list, $item);
        $crate::delete_route!($resource, $one, $many, $item);
    };
}

/// Like `world_routes!`, without the route that deletes one.
#[macro_export]
macro_rules! world_routes_but_delete {
    ($resource:ty, $input:ty, $view:ty, $filter:ty, $one:literal, $many:literal, $list:literal, $item:literal) => {
        use actix_web::{get, patch, post};
        use $crate::http::paging::Items;

        #[utoipa::path(
            tag = $many, operation_id = concat!("list_", $many), summary = concat!("Lists the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), $crate::http::paging::ListParams, $filter),
            responses((status = 200, body = Items<$view>), (status = "default", body = base::error::Problem)),
        )]
        #[get($list)]
        /// A page of the list.
        pub async fn list(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller,
            path: actix_web::web::Path<String>, page: $crate::http::paging::Page<$filter>,
        ) -> base::error::Result<$crate::http::Reply> {
            $crate::http::resource::list::<$resource>(&app, &caller, Some(&path), &page).await
        }

        #[utoipa::path(
            tag = $many, operation_id = concat!("create_", $one), request_body = $input,
            summary = concat!("Creates one of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug")),
            responses((status = 201, body = $view), (status = "default", body = base::error::Problem)),
        )]
        #[post($list)]
        /// Creates one.
        pub async fn create(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<String>, body: $crate::http::Body<$input>,
        ) -> base::error::Result<$crate::http::Reply> {
            $crate::http::resource::create::<$resource>(&app, &caller, Some(&path), request.path(), body).await
        }

        #[utoipa::path(
            tag = $many, operation_id = concat!("get_", $one),
            summary = concat!("Reads one entry of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 200, body = $view), (status = "default", body = base::error::Problem)),
        )]
        #[get($item)]
        /// Reads one.
        pub async fn get(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>,
        ) -> base::error::Result<actix_web::HttpResponse> {
            $crate::http::resource::get::<$resource>(&app, &caller, &request, Some(&path.0), &path.1).await
        }

        #[utoipa::path(
            tag = $many, operation_id = concat!("update_", $one),
            summary = concat!("Changes one entry of the campaign's ", $many, " by a JSON merge patch."),
            request_body(content = $input, content_type = "application/merge-patch+json", description = "JSON merge patch"),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 200, body = $view), (status = "default", body = base::error::Problem)),
        )]
        #[patch($item)]
        /// Changes one by a JSON merge patch.
        pub async fn patch(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>, body: $crate::http::Body<serde_json::Value>,
        ) -> base::error::Result<$crate::http::Reply> {
            $crate::http::resource::patch::<$resource>(&app, &caller, &request, Some(&path.0), &path.1, body).await
        }
    };
}

/// Defines the route that deletes one. Some kinds have their own instead.
#[macro_export]
macro_rules! delete_route {
    ($resource:ty, $one:literal, $many:literal, $item:literal) => {
        use actix_web::delete;

        #[utoipa::path(
            tag = $many, operation_id = concat!("delete_", $one),
            summary = concat!("Deletes one entry of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 204), (status = "default", body = base::error::Problem)),
        )]
        #[delete($item)]
        /// Deletes one.
        pub async fn delete(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>,
        ) -> base::error::Result<$crate::http::Reply> {
            $crate::http::resource::delete::<$resource>(&app, &caller, &request, Some(&path.0), &path.1).await
        }
    };
}
