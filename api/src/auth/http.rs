//! `/v1/auth/token` and `/v1/api-keys`.

use std::collections::BTreeSet;

use actix_web::{HttpRequest, delete, get, patch, post, web};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgExecutor, Row, postgres::PgRow};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Caller, Scope, Scopes, jwt::Narrowed, keys::NewKey};
use crate::{
    app::App,
    clock,
    error::{Code, Error, Problem, Result},
    http::{
        Body, Reply, etag,
        paging::{Items, Page, pattern},
        patch as merge_patch,
        resource::{Ref, campaign_id},
        validate,
    },
    tenancy::TenantTx,
};

const TOKEN_SECONDS: i64 = 900;

/// How to narrow a key.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TokenRequest {
    /// A part of the key's scopes; all of them unless given.
    scopes: Option<BTreeSet<Scope>>,
    /// The one campaign, by id or slug.
    campaign: Option<String>,
    /// The one player character, by id or slug; needs `campaign`.
    player_id: Option<String>,
    #[garde(range(min = 60, max = 3600))]
    #[schema(minimum = 60, maximum = 3600, default = 900)]
    ttl_seconds: Option<i64>,
}

/// An access token.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenView {
    access_token: String,
    token_type: &'static str,
    /// Seconds.
    expires_in: i64,
    /// Scopes, separated by spaces.
    scope: String,
}

/// Trades an API key for a short-lived token, narrowed to scopes, a campaign and a player.
#[utoipa::path(tag = "auth", operation_id = "create_token", request_body = TokenRequest,
    responses((status = 200, body = TokenView), (status = "default", body = Problem)))]
#[post("/auth/token")]
pub async fn token(app: web::Data<App>, caller: Caller, body: Body<TokenRequest>) -> Result<Reply> {
    if caller.is_token {
        return Err(Error::new(Code::Forbidden, "A token cannot be traded for a token; use the key."));
    }
    validate::check(&body.value)?;
    let TokenRequest { scopes, campaign, player_id, ttl_seconds } = body.value;
    let scopes: Scopes = match scopes {
        None => caller.scopes,
        Some(asked) => {
            if let Some(scope) = asked.iter().find(|s| !caller.scopes.has(**s)) {
                return Err(Error::new(
                    Code::Forbidden,
                    format!("The key does not have the scope `{}`.", scope.as_str()),
                ));
            }
            asked.into_iter().collect()
        }
    };
    let (campaign, player) = narrowed_to(&app, &caller, campaign.as_deref(), player_id.as_deref()).await?;
    let ttl = ttl_seconds.unwrap_or(TOKEN_SECONDS);
    let narrowed = Narrowed { scope: scopes.to_text(), campaign, player };
    let access_token = app.tokens.sign(&caller.key_prefix, caller.tenant_id(), narrowed, ttl)?;
    Reply::ok(&TokenView { access_token, token_type: "Bearer", expires_in: ttl, scope: scopes.to_text() })
}

async fn narrowed_to(
    app: &App,
    caller: &Caller,
    campaign: Option<&str>,
    player: Option<&str>,
) -> Result<(Option<Uuid>, Option<Uuid>)> {
    let unknown =
        |pointer: &str, what: &str| Error::invalid(pointer, "unknown_reference", format!("There is no such {what}."));
    let Some(campaign) = campaign else {
        return match player {
            None => Ok((None, None)),
            Some(_) => Err(Error::invalid("/campaign", "required", "A token for a player needs its campaign.")),
        };
    };
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await.map_err(|e| match e.code {
        Code::NotFound => unknown("/campaign", "campaign"),
        _ => e,
    })?;
    let Some(player) = player else { return Ok((Some(campaign), None)) };
    let player = crate::characters::service::player_id(&tx, campaign, player).await?;
    Ok((Some(campaign), Some(player)))
}

/// A key as it is listed: everything but the key.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    id: Uuid,
    name: String,
    prefix: String,
    scopes: Vec<Scope>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    last_used_at: Option<String>,
    created_at: String,
    version: i64,
    /// The whole key; only in the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl KeyView {
    fn of(row: &PgRow) -> Self {
        let time = |at: OffsetDateTime| at.format(&Rfc3339).unwrap_or_default();
        let names: Vec<String> = row.get("scopes");
        Self {
            id: row.get("id"),
            name: row.get("name"),
            prefix: row.get("prefix"),
            scopes: names.iter().filter_map(|n| Scope::parse(n)).collect(),
            expires_at: row.get::<Option<OffsetDateTime>, _>("expires_at").map(time),
            revoked_at: row.get::<Option<OffsetDateTime>, _>("revoked_at").map(time),
            last_used_at: row.get::<Option<OffsetDateTime>, _>("last_used_at").map(time),
            created_at: time(row.get("created_at")),
            version: row.get("version"),
            key: None,
        }
    }
}

/// A key to be made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct KeyInput {
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    name: String,
    #[garde(length(min = 1))]
    scopes: BTreeSet<Scope>,
    /// Seconds until it expires; never unless given.
    #[garde(range(min = 1, max = 315_360_000))]
    #[serde(default)]
    expires_in_seconds: Option<i64>,
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
    .bind(Uuid::now_v7())
    .bind(&key.prefix)
    .bind(&key.hash)
    .bind(name)
    .bind(&names)
    .bind(expires_at)
    .fetch_one(db)
    .await?)
}

/// The tenant's keys.
#[utoipa::path(tag = "auth", operation_id = "list_api_keys", params(crate::http::paging::ListParams),
    responses((status = 200, body = Items<KeyView>), (status = "default", body = Problem)))]
#[get("/api-keys")]
pub async fn list_keys(
    app: web::Data<App>,
    caller: Caller,
    page: Page<crate::http::paging::NoFilter>,
) -> Result<Reply> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM api_key WHERE tenant_id = $1 AND ($2::uuid IS NULL OR id {sign} $2) \
         AND ($4::text IS NULL OR name ILIKE $4) AND ($5::timestamptz IS NULL OR updated_at >= $5) \
         ORDER BY id {order} LIMIT $3"
    )))
    .bind(tx.tenant())
    .bind(page.after.as_ref().map(|a| a.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(page.q.as_deref().map(pattern))
    .bind(page.updated_since)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let keys: Vec<_> = rows.iter().map(KeyView::of).collect();
    Reply::ok(&page.finish(keys, |k| (k.id, None)))
}

/// Makes a key of some of the caller's own scopes. The answer is the only place that shows it.
#[utoipa::path(tag = "auth", operation_id = "create_api_key", request_body = KeyInput,
    responses((status = 201, body = KeyView), (status = "default", body = Problem)))]
#[post("/api-keys")]
pub async fn create_key(app: web::Data<App>, caller: Caller, body: Body<KeyInput>) -> Result<Reply> {
    validate::check(&body.value)?;
    // A replayed answer would show the key a second time, so this route keeps none.
    let KeyInput { name, scopes, expires_in_seconds } = body.value;
    if let Some(scope) = scopes.iter().find(|s| !caller.scopes.has(**s)) {
        return Err(Error::new(Code::Forbidden, format!("You do not have the scope `{}` to give.", scope.as_str())));
    }
    let scopes: Vec<Scope> = scopes.into_iter().collect();
    let expires_at = expires_in_seconds.map(|s| clock::now() + Duration::seconds(s));
    let new = NewKey::generate();
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let row = store_key(&mut *tx.connection().await, tx.tenant(), &new, &name, &scopes, expires_at).await?;
    tx.commit().await?;
    let view = KeyView { key: Some(new.key), ..KeyView::of(&row) };
    Reply::created(format!("/v1/api-keys/{}", view.id), view.version, &view)
}

async fn find_key(tx: &TenantTx, x: &str) -> Result<PgRow> {
    let row = sqlx::query("SELECT * FROM api_key WHERE tenant_id = $1 AND (id::text = $2 OR prefix = $2) FOR UPDATE")
        .bind(tx.tenant())
        .bind(x)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.ok_or_else(|| Error::not_found("API key"))
}

/// One key, by id or prefix.
#[utoipa::path(tag = "auth", operation_id = "get_api_key", params(("x" = String, Path, description = "Id or prefix")),
    responses((status = 200, body = KeyView), (status = "default", body = Problem)))]
#[get("/api-keys/{x}")]
pub async fn get_key(app: web::Data<App>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let view = KeyView::of(&find_key(&tx, &path).await?);
    Ok(Reply::ok(&view)?.versioned(view.version))
}

/// What can be changed of a key.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct KeyChange {
    #[garde(length(chars, max = 200))]
    name: String,
    #[garde(length(min = 1))]
    scopes: BTreeSet<Scope>,
}

/// Renames a key or changes its scopes.
#[utoipa::path(tag = "auth", operation_id = "patch_api_key", params(("x" = String, Path, description = "Id or prefix")),
    request_body(content = KeyChange, content_type = "application/merge-patch+json"),
    responses((status = 200, body = KeyView), (status = "default", body = Problem)))]
#[patch("/api-keys/{x}")]
pub async fn patch_key(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<Reply> {
    let reply = crate::http::write(&app, &caller, None, async |tx| {
        let current = KeyView::of(&find_key(tx, &path).await?);
        etag::check(&request, current.version)?;
        let shown = serde_json::to_value(&current).map_err(Error::internal)?;
        let read_only =
            ["id", "prefix", "expires_at", "revoked_at", "last_used_at", "created_at", "updated_at", "version", "key"];
        let change: KeyChange = crate::http::body::typed(merge_patch::apply(shown, body.value.clone(), &read_only)?)?;
        validate::check(&change)?;
        if let Some(scope) = change.scopes.iter().find(|s| !caller.scopes.has(**s)) {
            return Err(Error::new(
                Code::Forbidden,
                format!("You do not have the scope `{}` to give.", scope.as_str()),
            ));
        }
        let names: Vec<&str> = change.scopes.iter().map(|s| s.as_str()).collect();
        let row = sqlx::query("UPDATE api_key SET name = $3, scopes = $4 WHERE tenant_id = $1 AND id = $2 RETURNING *")
            .bind(tx.tenant())
            .bind(current.id)
            .bind(&change.name)
            .bind(&names)
            .fetch_one(&mut *tx.connection().await)
            .await?;
        let view = KeyView::of(&row);
        Ok(Reply::ok(&view)?.versioned(view.version))
    })
    .await?;
    app.keys.forget();
    Ok(reply)
}

/// Revokes a key: within a second neither it nor its tokens are accepted. Its record stays.
#[utoipa::path(tag = "auth", operation_id = "delete_api_key", params(("x" = String, Path, description = "Id or prefix")),
    responses((status = 204), (status = "default", body = Problem)))]
#[delete("/api-keys/{x}")]
pub async fn delete_key(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<Reply> {
    let reply = crate::http::write(&app, &caller, None, async |tx| {
        let current = KeyView::of(&find_key(tx, &path).await?);
        etag::check(&request, current.version)?;
        sqlx::query("UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE tenant_id = $1 AND id = $2")
            .bind(tx.tenant())
            .bind(current.id)
            .execute(&mut *tx.connection().await)
            .await?;
        Ok(Reply::no_content())
    })
    .await?;
    app.keys.forget();
    Ok(reply)
}
