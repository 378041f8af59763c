//! Creating, patching and deleting rows.

use std::fmt::Write as _;

use actix_web::HttpRequest;
use sea_orm::{EntityTrait, FromQueryResult, Iden, Iterable};
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{Place, READ_ONLY, Ref, Resource, Shown, answer, campaign_id, hold, hold_key, shown, slugs::free_slug};
use crate::{
    caller::Caller,
    http::{self, Answer, Written, bounds, etag::Expected, idempotency::IdempotencyKey, patch, validate},
    state::Edge,
};
use base::{
    clock,
    error::{Code, Error, Result},
    search,
};
use db::tenancy::{self, TenantTx};

/// Columns of unique indexes. A statement that names one of them locks the row's key even if the value stays the same, and then waits
/// for everybody who refers to the row.
const KEYS: [&str; 4] = ["slug", "external_ref", "channel", "client_id"];

/// POST of a new row.
///
/// # Errors
/// `validation_failed`, `slug_taken`, `not_found` for the campaign.
pub async fn create<R: Resource>(
    app: &Edge,
    caller: &Caller,
    c: Option<&str>,
    path: &str,
    (input, key): (&R::Input, Option<&IdempotencyKey>),
) -> Result<Written<Shown<R::View>>> {
    let sent = serde_json::to_value(input).map_err(Error::internal)?;
    R::check_sent(&sent)?;
    validate::check(input)?;
    if R::LISTS_TOOLS {
        app.check_tools(&sent["available_tools"], &Value::Null)?;
    }
    bounds::check::<R::Input>(&sent)?;
    http::write(app, caller, key, async |tx| {
        let campaign = match c {
            Some(c) => campaign_id(tx, caller, &Ref::parse(c)).await?,
            None if caller.campaign.is_some() => {
                return Err(Error::new(Code::Forbidden, "This token is for one campaign only."));
            }
            None => clock::id(),
        };
        app.limits.check_rows(tx, caller, R::TABLE).await?;
        let model = insert::<R>(&Place { tx, campaign, caller }, http::read::typed(sent.clone())?).await?;
        let stamp = R::stamp(&model);
        let (location, version) = (format!("{path}/{}", stamp.id), stamp.version);
        Ok(Answer::created(location, version, shown::<R>(model, caller)))
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
    let id = if R::IN_CAMPAIGN { clock::id() } else { place.campaign };
    let row = insert_columns::<R>(place.tx, place.campaign, id, columns).await;
    row.map_err(|error| if is_derived { error.of_derived_slug() } else { error })
}

/// Inserts validated columns.
///
/// # Errors
/// `slug_taken`; `validation_failed` for references.
pub async fn insert_columns<R: Resource>(
    tx: &TenantTx,
    campaign: Uuid,
    id: Uuid,
    mut columns: Map<String, Value>,
) -> Result<R::Model> {
    fold_columns(&mut columns, R::FOLDED);
    columns.insert("id".to_owned(), id.to_string().into());
    columns.insert("tenant_id".to_owned(), tx.tenant().to_string().into());
    if R::IN_CAMPAIGN {
        columns.insert("campaign_id".to_owned(), campaign.to_string().into());
    }
    let names = quoted(columns.keys(), "");
    let sql = format!(
        "INSERT INTO {0} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::\"{0}\", $1) RETURNING {1}",
        R::TABLE,
        returning::<R>("")
    );
    let row =
        sqlx::query(AssertSqlSafe(sql)).bind(Value::Object(columns)).fetch_one(&mut *tx.connection().await).await?;
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
    changes: Value,
) -> Result<Answer<Shown<R::View>>> {
    let changed = change::<R>(app, caller, &Expected::by(request), c, x, changes).await?;
    Ok(answer::<R>(changed, caller))
}

/// Like [`patch()`], without a request: takes the expected version and the patch. Returns the changed row.
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
) -> Result<R::Model> {
    let (c, x) = (c.map(Ref::parse), Ref::parse(x));
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        change_in::<R>(app, caller, tx, expected, (c.as_ref(), &x), &changes).await
    })
    .await
}

/// Like [`change`], in the caller's transaction.
///
/// # Errors
/// Those of [`patch()`].
pub async fn change_in<R: Resource>(
    app: &Edge,
    caller: &Caller,
    tx: &TenantTx,
    expected: &Expected,
    (c, x): (Option<&Ref>, &Ref),
    changes: &Value,
) -> Result<R::Model> {
    R::check_sent(changes)?;
    let current = match KEYS.iter().any(|name| changes.get(*name).is_some()) {
        true => hold_key::<R>(tx, caller, c, x).await?,
        false => hold::<R>(tx, caller, c, x).await?,
    };
    expected.check(R::stamp(&current).version)?;
    change_held::<R>(app, caller, tx, current, changes.clone()).await
}

/// Changes a row that the transaction has locked, by a merge patch.
///
/// # Errors
/// `validation_failed`, `slug_taken`.
pub async fn change_held<R: Resource>(
    app: &Edge,
    caller: &Caller,
    tx: &TenantTx,
    current: R::Model,
    changes: Value,
) -> Result<R::Model> {
    let id = R::stamp(&current).id;
    let before = R::watched(&current);
    let shown = serde_json::to_value(R::View::from(current)).map_err(Error::internal)?;
    let campaign = shown.get("campaign_id").and_then(Value::as_str).and_then(|c| c.parse().ok()).unwrap_or(id);
    let read_only: Vec<_> = READ_ONLY.iter().chain(R::READ_ONLY).copied().collect();
    if R::LISTS_TOOLS {
        app.check_tools(&changes["available_tools"], &shown["available_tools"])?;
    }
    let bytes_before = bounds::size(&shown);
    let keys = keys_of(&shown);
    let derived = R::derived(&shown, &changes);
    let mut document = patch::apply(shown, changes.clone(), &read_only)?;
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| !derived.contains(&name.as_str()));
    }
    bounds::check_patched::<R::Input>(&document, &changes, bytes_before)?;
    let input: R::Input = bounds::typed(document)?;
    validate::check(&input)?;
    let place = Place { tx, campaign, caller };
    let model = write_over::<R>(&place, id, &keys, input).await?;
    R::changed(&place, before, &model).await?;
    Ok(model)
}

/// Writes a valid input over a row that the transaction has locked, and that is now `present`.
///
/// # Errors
/// `slug_taken`; `validation_failed` for references.
pub async fn update<R: Resource>(place: &Place<'_>, present: R::Model, input: R::Input) -> Result<R::Model> {
    let id = R::stamp(&present).id;
    let shown = serde_json::to_value(R::View::from(present)).map_err(Error::internal)?;
    write_over::<R>(place, id, &keys_of(&shown), input).await
}

/// The values that a row has in the columns of unique indexes.
fn keys_of(shown: &Value) -> Map<String, Value> {
    let value = |name: &&str| Some(((*name).to_owned(), shown.get(*name)?.clone()));
    KEYS.iter().filter_map(value).collect()
}

/// Writes an input over a row, without the keys that stay the same.
async fn write_over<R: Resource>(
    place: &Place<'_>,
    id: Uuid,
    keys: &Map<String, Value>,
    input: R::Input,
) -> Result<R::Model> {
    let mut columns = R::columns(place, input).await?;
    columns.retain(|name, value| keys.get(name) != Some(value));
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
    fold_columns(&mut columns, R::FOLDED);
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
) -> Result<Answer<()>> {
    remove::<R>(app, caller, &Expected::by(request), c, x).await?;
    Ok(Answer::no_content())
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
) -> Result<()> {
    let stopped = tenancy::write(&app.pool, caller.actor(), async |tx| {
        let current = hold_key::<R>(tx, caller, c.map(Ref::parse).as_ref(), &Ref::parse(x)).await?;
        let stamp = R::stamp(&current);
        expected.check(stamp.version)?;
        R::may_delete(tx, &current).await?;
        R::delete(tx, stamp.id).await
    })
    .await
    .map_err(Error::of_delete)?;
    // Other servers learn of it from the database.
    for turn in stopped {
        app.cancel(turn);
    }
    Ok(())
}

/// Adds the folded forms of the columns that are searched. Whoever writes such a column writes its folded form with it.
pub fn fold_columns(columns: &mut Map<String, Value>, searched: &[&str]) {
    for name in searched {
        let folded = match columns.get(*name) {
            None => continue,
            Some(Value::Array(list)) => {
                let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                search::stored(&texts.join("\n"))
            }
            Some(value) => value.as_str().and_then(search::stored),
        };
        columns.insert(format!("folded_{name}"), folded.into());
    }
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
