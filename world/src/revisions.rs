//! Revisions: the earlier versions of a row, and restoring them. They are read from the journal; nothing else is stored.
//!
//! Like the journal, revisions are for game masters only, because they contain old secrets. A restore is an ordinary write:
//! the version rises and the journal records it. A deleted row comes back with its id.

use sea_orm::FromQueryResult;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::journal;
use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        self, Answer, Written, budget,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging,
        resource::{self, Place, Ref, Resource, Shown, campaign_id},
    },
    state::Edge,
};

/// One change of a row.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Revision {
    /// Its number in the campaign's journal.
    pub seq: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// `insert`, `update` or `delete`.
    pub op: String,
    /// `api`, `turn`, `import`, `fork`, `revert` or `system`.
    pub origin: String,
    /// The API key that made the change.
    pub actor: Option<Uuid>,
    /// The user of the editor who made the change.
    pub user_id: Option<Uuid>,
    /// The name of the key or user, if it still exists.
    pub actor_name: Option<String>,
    pub turn_id: Option<Uuid>,
    pub request_id: Option<String>,
    /// When words in the revision were erased. It cannot be restored then.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub redacted_at: Option<OffsetDateTime>,
    /// The row's version after the change; for a delete the last version.
    pub version: i64,
    /// The columns that changed.
    pub changed: Vec<String>,
    /// Their values before the change; null for an insert.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Map<String, Value>>,
    /// Their values after the change; null for a delete.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Map<String, Value>>,
}

/// A page of revisions, newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Revisions {
    pub items: Vec<Revision>,
    /// Pass as `before` for older revisions; null if there are none.
    pub next_before: Option<i64>,
    /// Whether older revisions may have been pruned.
    pub pruned: bool,
}

/// Which revisions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct RevisionParams {
    /// Revisions per page, 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: i64,
    /// Only revisions before this number.
    #[param(minimum = 1)]
    pub before: Option<i64>,
}

impl Default for RevisionParams {
    fn default() -> Self {
        Self { limit: 50, before: None }
    }
}

/// Parses the query.
///
/// # Errors
/// `bad_request`.
pub fn params(query: &str) -> Result<RevisionParams> {
    let params: RevisionParams = paging::read_filter(paging::parameters(query)?)?;
    if !(1..=200).contains(&params.limit) {
        return Err(paging::bad("limit", "must be from 1 to 200"));
    }
    if params.before.is_some_and(|b| b < 1) {
        return Err(paging::bad("before", "must be 1 or more"));
    }
    Ok(params)
}

/// Resolves an id or slug. The row itself may be gone if an id is given.
async fn row_id<R: Resource>(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    x: &str,
) -> Result<(Uuid, Option<R::Model>)> {
    let named = Ref::parse(x);
    match (resource::find::<R>(tx, caller, Some(&Ref::Id(campaign)), &named).await, named) {
        (Ok(model), _) => Ok((R::stamp(&model).id, Some(model))),
        (Err(e), Ref::Id(id)) if e.code == Code::NotFound => Ok((id, None)),
        (Err(e), _) => Err(e),
    }
}

/// GET of a row's revisions.
///
/// # Errors
/// `not_found` if there never was such a row, `gone` if the requested revisions are pruned.
pub async fn list<R: Resource>(
    app: &Edge,
    caller: &Caller,
    c: &str,
    x: &str,
    asked: &RevisionParams,
) -> Result<Revisions> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let (id, row) = row_id::<R>(&tx, caller, campaign, x).await?;
    let page = page(&tx, campaign, R::TABLE, id, asked).await?;
    if page.items.is_empty() && row.is_none() && asked.before.is_none() {
        return Err(Error::not_found(R::TABLE));
    }
    Ok(page)
}

/// A page of a row's revisions. Two statements.
///
/// # Errors
/// `gone` if everything before `before` is pruned.
pub async fn page(tx: &TenantTx, campaign: Uuid, table: &str, id: Uuid, asked: &RevisionParams) -> Result<Revisions> {
    let sql = budget::within(
        "SELECT j.*, coalesce(k.name, u.name) AS actor_name FROM journal j \
         LEFT JOIN api_key k ON k.tenant_id = j.tenant_id AND k.id = j.key_id \
         LEFT JOIN LATERAL (SELECT t.name FROM tenant_people(j.user_id, NULL) t WHERE j.user_id IS NOT NULL) u ON true \
         WHERE j.tenant_id = $1 AND j.row_id = $2 AND j.campaign_id = $3 AND j.table_name = $4 AND j.seq < $5 \
         ORDER BY j.seq DESC LIMIT $6",
        ["before", "after"],
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(id)
        .bind(campaign)
        .bind(table)
        .bind(asked.before.unwrap_or(i64::MAX))
        .bind(asked.limit + 1)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let (_, pruned_seq) = journal::head(tx, campaign).await?;
    if asked.before.is_some_and(|before| before <= pruned_seq) {
        return Err(Error::new(Code::Gone, format!("The journal up to {pruned_seq} has been pruned.")));
    }
    let limit = usize::try_from(asked.limit).unwrap_or(200);
    let mut items = stored::each(rows.iter().take(limit), revision);
    let more = budget::keep(&mut items) | budget::is_cut(&rows) | (rows.len() > limit);
    let pruned = pruned_seq > 0 && !more && items.last().is_none_or(|r| r.op != "insert");
    let next_before = items.last().filter(|_| more).map(|r| r.seq);
    Ok(Revisions { items, next_before, pruned })
}

/// One change of a step, with its row.
pub struct Touched {
    pub row: Uuid,
    /// The row's current or last name.
    pub label: String,
    pub revision: Revision,
}

/// The changes in a range of the journal, in order. One statement.
///
/// # Errors
/// Database errors.
pub async fn of_stretch(
    tx: &TenantTx,
    campaign: Uuid,
    (first, last): (i64, i64),
    rows_max: i64,
) -> Result<Vec<Touched>> {
    let sql = budget::within(
        "SELECT j.*, NULL::text AS actor_name, left(coalesce(c ->> 'title', c ->> 'name', c ->> 'text', ''), 120) AS label \
         FROM journal j CROSS JOIN LATERAL (SELECT coalesce(j.after, j.before) AS c) content \
         WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq BETWEEN $3 AND $4 ORDER BY j.seq LIMIT $5",
        ["before", "after"],
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(first)
        .bind(last)
        .bind(rows_max)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let touched =
        |row: &PgRow| Ok(Touched { row: row.read("row_id")?, label: row.read("label")?, revision: revision(row)? });
    Ok(stored::each(&rows, touched))
}

/// The current or last names of rows, by id. One statement.
///
/// # Errors
/// Database errors.
pub async fn labels(tx: &TenantTx, campaign: Uuid, ids: &[Uuid]) -> Result<HashMap<Uuid, String>> {
    let rows = sqlx::query(
        "SELECT id, label FROM unnest($3::uuid[]) AS named (id) CROSS JOIN LATERAL ( \
             SELECT left(coalesce(c ->> 'title', c ->> 'name', c ->> 'text', ''), 120) AS label \
             FROM journal j CROSS JOIN LATERAL (SELECT coalesce(j.after, j.before) AS c) content \
             WHERE j.tenant_id = $1 AND j.row_id = named.id AND j.campaign_id = $2 ORDER BY j.seq DESC LIMIT 1) last",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(ids)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("id")?, row.read("label")?))).collect()
}

/// Which of these rows were changed here since an import last wrote them, as far as the journal goes back. One statement.
///
/// # Errors
/// Database errors.
pub async fn edited_since_import(tx: &TenantTx, campaign: Uuid, table: &str, ids: &[Uuid]) -> Result<HashSet<Uuid>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = sqlx::query(
        "SELECT named.id FROM unnest($4::uuid[]) AS named (id) \
         CROSS JOIN LATERAL (SELECT coalesce(max(seq) FILTER (WHERE origin = 'import'), 0) AS imported, \
             max(seq) FILTER (WHERE origin <> 'import') AS edited \
             FROM journal WHERE tenant_id = $1 AND row_id = named.id AND campaign_id = $2 AND table_name = $3) last \
         WHERE last.edited > last.imported",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(table)
    .bind(ids)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read("id")).collect()
}

fn revision(row: &PgRow) -> Result<Revision> {
    let (before, after): (Option<Value>, Option<Value>) = (row.read("before")?, row.read("after")?);
    let members = |value: &Option<Value>| value.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let (old, new) = (members(&before), members(&after));
    let changed: Vec<String> = old
        .keys()
        .chain(new.keys().filter(|k| !old.contains_key(*k)))
        .filter(|k| old.get(*k) != new.get(*k) && journal::is_told(k))
        .cloned()
        .collect();
    let pick = |from: &Map<String, Value>| {
        changed.iter().filter_map(|k| from.get(k).map(|v| (k.clone(), v.clone()))).collect::<Map<_, _>>()
    };
    let version = |of: &Map<String, Value>| of.get("version").and_then(Value::as_i64);
    Ok(Revision {
        seq: row.read("seq")?,
        at: row.read("at")?,
        op: row.read("op")?,
        origin: row.read("origin")?,
        actor: row.read("key_id")?,
        user_id: row.read("user_id")?,
        actor_name: row.read("actor_name")?,
        turn_id: row.read("turn_id")?,
        request_id: row.read("request_id")?,
        redacted_at: row.read("redacted_at")?,
        version: version(&new).or_else(|| version(&old)).unwrap_or_default(),
        before: before.as_ref().map(|_| pick(&old)),
        after: after.as_ref().map(|_| pick(&new)),
        changed,
    })
}

/// POST that restores a row to its state after a revision, or before it if the revision deleted the row.
///
/// # Errors
/// `gone` if the revision is pruned or erased, `not_found`, `precondition_failed`, `slug_taken`, `validation_failed` if the
/// row referred to something that is gone.
pub async fn restore<R: Resource>(
    app: &Edge,
    caller: &Caller,
    expected: &Expected,
    path: (&str, &str, i64),
    key: Option<&IdempotencyKey>,
) -> Result<Written<Shown<R::View>>> {
    let (c, x, seq) = path;
    http::write(app, caller, key, async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
        let place = Place { tx, campaign, caller };
        let model = restore_in::<R>(&place, x, seq, expected).await?;
        let version = R::stamp(&model).version;
        Ok(Answer::versioned(version, resource::shown::<R>(model, caller)))
    })
    .await
}

async fn restore_in<R: Resource>(place: &Place<'_>, x: &str, seq: i64, expected: &Expected) -> Result<R::Model> {
    let (tx, campaign) = (place.tx, place.campaign);
    let (id, row) = row_id::<R>(tx, place.caller, campaign, x).await?;
    if row.is_some() {
        // Lock the row, so that nobody writes between the check of its version and the restore.
        let row = resource::hold::<R>(tx, place.caller, Some(&Ref::Id(campaign)), &Ref::Id(id)).await?;
        expected.check(R::stamp(&row).version)?;
    }
    let mut content = content(tx, campaign, R::TABLE, id, seq).await?;
    if row.is_none() && !place.caller.sees_secrets() && content.get("secret") == Some(&Value::Bool(true)) {
        return Err(Error::not_found(R::TABLE));
    }
    R::before_restore(place, &mut content).await?;
    resource::fold_columns(&mut content, R::FOLDED);
    write_back(tx, R::TABLE, id, content, row.is_some()).await?;
    if row.is_none() && R::IS_ACTOR {
        memories_back(tx, campaign, id).await?;
    }
    resource::find::<R>(tx, place.caller, Some(&Ref::Id(campaign)), &Ref::Id(id)).await
}

async fn write_back(tx: &TenantTx, table: &str, id: Uuid, content: Map<String, Value>, is_there: bool) -> Result<()> {
    let sql = match is_there {
        true => "SELECT restore_revision($1, $2, $3)",
        false => "SELECT restore_row($1, $2, $3)",
    };
    sqlx::query(sql).bind(table).bind(id).bind(Value::Object(content)).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// How far, in the journal, the deletions of an actor's memories can be from the actor's own. They share a transaction.
const BESIDE_DELETION: i64 = 200_000;

/// Restores the memories that were deleted together with an actor that has come back, except those whose other party is still
/// gone. One statement.
async fn memories_back(tx: &TenantTx, campaign: Uuid, actor: Uuid) -> Result<()> {
    sqlx::query(
        "SELECT restore_row('memory', m.row_id, m.before) FROM ( \
             SELECT d.seq, d.at FROM journal d WHERE d.tenant_id = $1 AND d.row_id = $3 AND d.campaign_id = $2 AND d.op = 'delete' \
             ORDER BY d.seq DESC LIMIT 1) d \
         JOIN journal m ON m.tenant_id = $1 AND m.campaign_id = $2 AND m.table_name = 'memory' AND m.op = 'delete' \
             AND m.seq BETWEEN d.seq - $4 AND d.seq + $4 AND m.at = d.at \
         WHERE $3::text IN (m.before ->> 'holder_id', m.before ->> 'subject_id') AND m.redacted_at IS NULL \
           AND NOT EXISTS (SELECT FROM memory t WHERE t.tenant_id = $1 AND t.id = m.row_id) \
           AND NOT EXISTS (SELECT FROM memory t WHERE t.tenant_id = $1 AND t.campaign_id = $2 \
                           AND t.external_ref = m.before ->> 'external_ref') \
           AND (SELECT count(*) FROM actor_slug a WHERE a.tenant_id = $1 AND a.campaign_id = $2 \
                AND a.actor_id::text IN (m.before ->> 'holder_id', m.before ->> 'subject_id')) = 2",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(actor)
    .bind(BESIDE_DELETION)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// Restores a memory to a revision. If the memory still exists, the transaction must hold its lock.
///
/// # Errors
/// `gone`, `not_found`; `conflict` if its holder or subject is gone.
pub async fn restore_memory(tx: &TenantTx, campaign: Uuid, id: Uuid, seq: i64, is_there: bool) -> Result<()> {
    let content = content(tx, campaign, "memory", id, seq).await?;
    let named: Vec<Uuid> =
        ["holder_id", "subject_id"].iter().filter_map(|name| content.get(*name)?.as_str()?.parse().ok()).collect();
    let row = sqlx::query(
        "SELECT count(*) AS n FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND actor_id = ANY ($3)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(&named)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    if row.read::<i64>("n")? < 2 {
        let why = "The memory's holder or subject was deleted. Restore them first.";
        return Err(Error::new(Code::Conflict, why));
    }
    write_back(tx, "memory", id, content, is_there).await
}

/// The whole row at a revision, with hidden columns.
///
/// # Errors
/// `gone`, `not_found`.
pub async fn content(tx: &TenantTx, campaign: Uuid, table: &str, id: Uuid, seq: i64) -> Result<Map<String, Value>> {
    let row = sqlx::query(
        "SELECT coalesce(after, before) AS content, redacted_at FROM journal \
         WHERE tenant_id = $1 AND campaign_id = $2 AND seq = $3 AND row_id = $4 AND table_name = $5",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(seq)
    .bind(id)
    .bind(table)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    if let Some(row) = &row
        && row.read::<Option<OffsetDateTime>>("redacted_at")?.is_some()
    {
        return Err(Error::new(Code::Gone, "This revision cannot be restored: words in it were erased."));
    }
    match row.map(|row| row.read::<Value>("content")).transpose()? {
        Some(Value::Object(content)) => Ok(content),
        _ if seq <= journal::head(tx, campaign).await?.1 => {
            Err(Error::new(Code::Gone, "This revision has been pruned."))
        }
        _ => Err(Error::not_found("revision")),
    }
}

/// A row at a version, if the journal still has it and the current code can read it. One statement.
///
/// # Errors
/// Database errors.
pub async fn at_version<R: Resource>(
    tx: &TenantTx,
    campaign: Uuid,
    id: Uuid,
    version: i64,
) -> Result<Option<R::Model>> {
    let sql = format!(
        "SELECT {columns} FROM journal j, jsonb_populate_record(NULL::\"{table}\", j.after) r \
         WHERE j.tenant_id = $1 AND j.row_id = $2 AND j.campaign_id = $3 AND j.table_name = '{table}' \
           AND (j.after ->> 'version')::bigint = $4 AND j.redacted_at IS NULL ORDER BY j.seq DESC LIMIT 1",
        columns = resource::returning::<R>("r."),
        table = R::TABLE,
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(id)
        .bind(campaign)
        .bind(version)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    Ok(row.and_then(|row| R::Model::from_query_result(&row.into(), "").ok()))
}

/// A row's columns at a version, if the journal still has them. One statement.
///
/// # Errors
/// Database errors.
pub async fn columns_at_version(
    tx: &TenantTx,
    campaign: Uuid,
    table: &str,
    id: Uuid,
    version: i64,
) -> Result<Option<Map<String, Value>>> {
    let row = sqlx::query(
        "SELECT after FROM journal WHERE tenant_id = $1 AND row_id = $2 AND campaign_id = $3 AND table_name = $4 \
           AND (after ->> 'version')::bigint = $5 AND redacted_at IS NULL ORDER BY seq DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(campaign)
    .bind(table)
    .bind(version)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| Ok(row.read::<sqlx::types::Json<Map<String, Value>>>("after")?.0)).transpose()
}

/// A row that was deleted and has not come back.
#[derive(Clone, Debug)]
pub struct Deleted {
    pub id: Uuid,
    pub seq: i64,
    pub at: OffsetDateTime,
    pub label: String,
}

/// The rows of a table that were deleted last. `label` is the column with their name. One statement.
///
/// # Errors
/// Database errors.
pub async fn deleted(
    tx: &TenantTx,
    campaign: Uuid,
    (table, label): (&'static str, &'static str),
    rows_max: i64,
) -> Result<Vec<Deleted>> {
    let sql = format!(
        "SELECT j.row_id, j.seq, j.at, left(coalesce(j.before ->> '{label}', ''), 200) AS label FROM journal j \
         WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.table_name = $3 AND j.op = 'delete' AND NOT j.before ? 'redacted' \
           AND NOT EXISTS (SELECT FROM {table} r WHERE r.tenant_id = $1 AND r.id = j.row_id) \
           AND NOT EXISTS (SELECT FROM journal l WHERE l.tenant_id = $1 AND l.row_id = j.row_id AND l.seq > j.seq) \
         ORDER BY j.seq DESC LIMIT $4",
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(table)
        .bind(rows_max)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let gone = |r: &PgRow| {
        Ok(Deleted { id: r.read("row_id")?, seq: r.read("seq")?, at: r.read("at")?, label: r.read("label")? })
    };
    Ok(stored::each(&rows, gone))
}

/// Defines the revision routes of a resource, next to `world_routes!`.
#[macro_export]
macro_rules! revision_routes {
    ($resource:ty, $view:ty, $one:literal, $many:literal, $list:literal, $restore:literal) => {
        #[utoipa::path(
            get, path = $list,
            tag = $many, operation_id = concat!("list_", $one, "_revisions"),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug; for a deleted row its id"),
                   $crate::revisions::RevisionParams),
            responses((status = 200, body = $crate::revisions::Revisions), (status = "default", body = base::error::Problem)),
        )]
        /// Lists its revisions, newest first.
        pub async fn revisions(
            app: actix_web::web::Data<edge::state::Edge>, caller: edge::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>,
        ) -> base::error::Result<edge::http::Answer<$crate::revisions::Revisions>> {
            let asked = $crate::revisions::params(request.query_string())?;
            Ok(edge::http::Answer::ok($crate::revisions::list::<$resource>(&app, &caller, &path.0, &path.1, &asked).await?))
        }

        #[utoipa::path(
            post, path = $restore,
            tag = $many, operation_id = concat!("restore_", $one),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug; for a deleted row its id"),
                   ("seq" = i64, Path, description = "The revision's number")),
            responses((status = 200, description = "Its state after the restore", body = $view), (status = "default", body = base::error::Problem)),
        )]
        /// Restores a row to its state after a revision. A deleted row comes back.
        pub async fn restore(
            app: actix_web::web::Data<edge::state::Edge>, caller: edge::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String, i64)>, body: edge::http::Body<edge::http::NoBody>,
        ) -> base::error::Result<edge::http::Written<edge::http::resource::Shown<$view>>> {
            let expected = edge::http::etag::Expected::by(&request);
            let path = (path.0.as_str(), path.1.as_str(), path.2);
            $crate::revisions::restore::<$resource>(&app, &caller, &expected, path, body.idempotency.as_ref()).await
        }
    };
}
