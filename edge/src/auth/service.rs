//! API keys as a tenant's administrators manage them, for `/v1/api-keys` and the editor.

use db::tenancy;
use std::collections::BTreeSet;

use garde::Validate;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, PgExecutor, postgres::PgRow};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::caller::{Caller, Scope, keys::NewKey};
use crate::{
    http::{
        Answer, Written,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::{Items, NoFilter, Page, contains, pattern},
        validate,
    },
    state::Edge,
};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// An API key as it is listed, without the key itself.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    pub id: Uuid,
    pub name: String,
    pub prefix: String,
    pub scopes: Vec<Scope>,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
    pub last_used_at: Option<String>,
    pub created_at: String,
    pub version: i64,
    /// The whole key; only in the answer that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl KeyView {
    pub(super) fn of(row: &PgRow) -> Result<Self> {
        let time = |at: OffsetDateTime| at.format(&Rfc3339).unwrap_or_default();
        let names: Vec<String> = row.read("scopes")?;
        Ok(Self {
            id: row.read("id")?,
            name: row.read("name")?,
            prefix: row.read("prefix")?,
            scopes: names.iter().filter_map(|n| Scope::parse(n)).collect(),
            expires_at: row.read::<Option<OffsetDateTime>>("expires_at")?.map(time),
            revoked_at: row.read::<Option<OffsetDateTime>>("revoked_at")?.map(time),
            last_used_at: row.read::<Option<OffsetDateTime>>("last_used_at")?.map(time),
            created_at: time(row.read("created_at")?),
            version: row.read("version")?,
            key: None,
        })
    }
}

/// A key to create.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct KeyInput {
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    pub name: String,
    #[garde(length(min = 1))]
    #[schema(min_items = 1, value_type = Vec<Scope>)]
    pub scopes: BTreeSet<Scope>,
    /// Seconds until the key expires. By default it does not expire.
    #[garde(range(min = 1, max = 315_360_000))]
    #[schema(minimum = 1, maximum = 315_360_000)]
    #[serde(default)]
    pub expires_in_seconds: Option<i64>,
}

/// Stores a new key.
///
/// # Errors
/// `conflict` if its prefix is taken.
pub async fn store_key(
    db: impl PgExecutor<'_>,
    tenant: Uuid,
    key: &NewKey,
    name: &str,
    scopes: &[Scope],
    expires_at: Option<OffsetDateTime>,
) -> Result<PgRow> {
    let names: Vec<&str> = scopes.iter().map(|s| s.as_str()).collect();
    Ok(sqlx::query(
        "INSERT INTO api_key (tenant_id, id, prefix, hash, name, scopes, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *",
    )
    .bind(tenant)
    .bind(clock::id())
    .bind(&key.prefix)
    .bind(&key.hash)
    .bind(name)
    .bind(&names)
    .bind(expires_at)
    .fetch_one(db)
    .await?)
}

/// A page of the tenant's keys.
///
/// # Errors
/// `bad_request` for any other order than by creation.
pub async fn list(tx: &TenantTx, page: &Page<NoFilter>) -> Result<Items<KeyView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM api_key WHERE tenant_id = $1 AND ($2::uuid IS NULL OR id {sign} $2) \
         AND {} AND ($5::timestamptz IS NULL OR updated_at >= $5) \
         ORDER BY id {order} LIMIT $3",
        contains(4, &["name"])
    )))
    .bind(tx.tenant())
    .bind(page.after.as_ref().map(|a| a.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(page.q.as_deref().map(pattern))
    .bind(page.updated_since)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(page.finish(stored::each(&rows, KeyView::of), page.has_more(&rows), |k| (k.id, None)))
}

/// Creates a key with some of the caller's own scopes. Only the returned view shows the key. If the request is
/// repeated under the same key (`once`), it gets the first answer without the API key.
///
/// # Errors
/// `validation_failed`, `forbidden` for scopes that the caller does not have.
pub async fn create(
    app: &Edge,
    caller: &Caller,
    input: KeyInput,
    once: Option<&IdempotencyKey>,
) -> Result<Written<KeyView>> {
    validate::check(&input)?;
    let KeyInput { name, scopes, expires_in_seconds } = input;
    may_give(caller, &scopes)?;
    let scopes: Vec<Scope> = scopes.into_iter().collect();
    let expires_at = expires_in_seconds.map(|s| clock::later(clock::now(), Duration::seconds(s)));
    let new = NewKey::generate();
    let made = tenancy::write(&app.pool, caller.actor(), async |tx| {
        if let Some(once) = once
            && let Some(stored) = once.claim(tx).await?
        {
            return Ok(Written::Before(stored));
        }
        let row = store_key(&mut *tx.connection().await, tx.tenant(), &new, &name, &scopes, expires_at).await?;
        let view = KeyView::of(&row)?;
        let answer = Answer::created(format!("/v1/api-keys/{}", view.id), view.version, view);
        if let Some(once) = once {
            once.store(tx, &answer).await?;
        }
        Ok(answer.into())
    });
    Ok(made.await?.map(|view| KeyView { key: Some(new.key), ..view }))
}

/// Checks that the caller gives only scopes that it has.
///
/// # Errors
/// `forbidden`.
pub(super) fn may_give(caller: &Caller, scopes: &BTreeSet<Scope>) -> Result<()> {
    match scopes.iter().find(|s| !caller.scopes.has(**s)) {
        None => Ok(()),
        Some(scope) => Err(Error::new(
            Code::Forbidden,
            format!("You cannot give the scope `{}`, because you do not have it.", scope.as_str()),
        )),
    }
}

/// Finds a key by id or prefix and locks it until the transaction ends.
///
/// # Errors
/// `not_found`.
pub(super) async fn find(tx: &TenantTx, x: &str) -> Result<KeyView> {
    one(tx, x, "FOR NO KEY UPDATE").await
}

/// Like `find`, without locking.
///
/// # Errors
/// `not_found`.
pub async fn get(tx: &TenantTx, x: &str) -> Result<KeyView> {
    one(tx, x, "").await
}

async fn one(tx: &TenantTx, x: &str, lock: &'static str) -> Result<KeyView> {
    let sql = format!("SELECT * FROM api_key WHERE tenant_id = $1 AND (id::text = $2 OR prefix = $2) {lock}");
    let row =
        sqlx::query(AssertSqlSafe(sql)).bind(tx.tenant()).bind(x).fetch_optional(&mut *tx.connection().await).await?;
    KeyView::of(&row.ok_or_else(|| Error::not_found("API key"))?)
}

/// Revokes a key. Within a second, neither the key nor its tokens are accepted. Its record stays.
///
/// # Errors
/// `not_found`, `precondition_failed`.
pub async fn revoke(tx: &TenantTx, expected: &Expected, x: &str) -> Result<KeyView> {
    let current = find(tx, x).await?;
    expected.check(current.version)?;
    sqlx::query("UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(current.id)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(current)
}
