//! `/v1/auth/token`, `/v1/api-keys` and `/v1/whoami`.

use std::collections::BTreeSet;

use actix_web::{HttpRequest, web};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    service::{self, KeyInput, KeyView},
    whoami::{Whoami, describe},
};
use crate::caller::{
    Caller, Scope, Scopes,
    jwt::{Claims, Narrowed},
};
use crate::{
    http::{
        Answer, Body, Written,
        etag::{self, Expected},
        paging::{Items, Page},
        patch as merge_patch,
        resource::{Ref, campaign_id},
        validate, write,
    },
    state::Edge,
};
use base::error::{Code, Error, Problem, Result};
use db::tenancy::{self, TenantTx};

const TOKEN_SECONDS: i64 = 900;

/// The restrictions and the lifetime of a token.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TokenRequest {
    /// Some of the key's scopes. By default all but `admin`.
    #[schema(value_type = Option<Vec<Scope>>)]
    scopes: Option<BTreeSet<Scope>>,
    /// The one campaign that the token is for, by id or slug.
    campaign: Option<String>,
    /// The one player character that the token is for, by id or slug. Requires `campaign`.
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
    /// Seconds until the token expires.
    expires_in: i64,
    /// Scopes, separated by spaces.
    scope: String,
}

/// Exchanges an API key for a short-lived token, which can be restricted to scopes, a campaign and a player.
#[utoipa::path(post, path = "/v1/auth/token",
    tag = "auth", operation_id = "create_token", request_body = TokenRequest,
    responses((status = 200, body = TokenView), (status = "default", body = Problem)))]
pub async fn token(app: web::Data<Edge>, caller: Caller, body: Body<TokenRequest>) -> Result<Answer<TokenView>> {
    if caller.is_token {
        return Err(Error::new(Code::Forbidden, "A token cannot be exchanged for another token. Use the API key."));
    }
    validate::check(&body.value)?;
    let TokenRequest { scopes, campaign, player_id, ttl_seconds } = body.value;
    let scopes: Scopes = match scopes {
        None => caller.scopes.without(Scope::Admin),
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
    let claims = Claims::of_token(&caller.key_prefix, caller.tenant_id(), narrowed, ttl);
    let now = claims.iat;
    let Some(key) = &body.idempotency else { return Ok(Answer::ok(TokenView::of(&app, &claims, now)?)) };
    // Only the claims are stored, not the token. Signing them again gives the same token.
    let stored = write(&app, &caller, Some(key), async |_| Ok(Answer::ok(claims.clone()))).await?;
    let (is_replayed, stored) = (stored.is_replayed(), stored.value()?);
    if stored.sub != caller.key_prefix {
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key was used with another API key."));
    }
    // A token that has ended would be of no use.
    if is_replayed && stored.exp <= now {
        return Ok(Answer::ok(TokenView::of(&app, &claims, now)?));
    }
    Ok(Answer::ok(TokenView::of(&app, &stored, now)?).replayed(is_replayed))
}

impl TokenView {
    fn of(app: &Edge, claims: &Claims, now: i64) -> Result<Self> {
        Ok(Self {
            access_token: app.tokens.sign(claims)?,
            token_type: "Bearer",
            expires_in: claims.exp - now,
            scope: claims.scope.clone(),
        })
    }
}

async fn narrowed_to(
    app: &Edge,
    caller: &Caller,
    campaign: Option<&str>,
    player: Option<&str>,
) -> Result<(Option<Uuid>, Option<Uuid>)> {
    let unknown =
        |pointer: &str, what: &str| Error::invalid(pointer, "unknown_reference", format!("There is no such {what}."));
    let Some(campaign) = campaign else {
        return match player {
            None => Ok((None, None)),
            Some(_) => Err(Error::invalid("/campaign", "required", "A token for a player also needs `campaign`.")),
        };
    };
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await.map_err(|e| match e.code {
        Code::NotFound => unknown("/campaign", "campaign"),
        _ => e,
    })?;
    let Some(player) = player else { return Ok((Some(campaign), None)) };
    let player = crate::auth::player::id(&tx, campaign, player).await?;
    Ok((Some(campaign), Some(player)))
}

/// Lists the tenant's keys.
#[utoipa::path(get, path = "/v1/api-keys",
    tag = "auth", operation_id = "list_api_keys", params(crate::http::paging::ListParams),
    responses((status = 200, body = Items<KeyView>), (status = "default", body = Problem)))]
pub async fn list_keys(
    app: web::Data<Edge>,
    caller: Caller,
    page: Page<crate::http::paging::NoFilter>,
) -> Result<Answer<Items<KeyView>>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Ok(Answer::ok(service::list(&tx, &page).await?))
}

/// Creates a key with some of the caller's own scopes.
///
/// Only this answer shows the key. A replayed answer does not.
#[utoipa::path(post, path = "/v1/api-keys",
    tag = "auth", operation_id = "create_api_key", request_body = KeyInput,
    responses((status = 201, body = KeyView), (status = "default", body = Problem)))]
pub async fn create_key(app: web::Data<Edge>, caller: Caller, body: Body<KeyInput>) -> Result<Written<KeyView>> {
    service::create(&app, &caller, body.value, body.idempotency.as_ref()).await
}

/// Reads one key, by id or prefix.
#[utoipa::path(get, path = "/v1/api-keys/{x}",
    tag = "auth", operation_id = "get_api_key", params(("x" = String, Path, description = "Id or prefix")),
    responses((status = 200, body = KeyView), (status = "default", body = Problem)))]
pub async fn get_key(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<Answer<KeyView>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let view = service::get(&tx, &path).await?;
    Ok(Answer::versioned(view.version, view))
}

/// The members of a key that can be changed.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct KeyChange {
    #[garde(length(chars, max = 200))]
    name: String,
    #[garde(length(min = 1))]
    #[schema(min_items = 1, value_type = Vec<Scope>)]
    scopes: BTreeSet<Scope>,
}

/// Renames a key or changes its scopes.
#[utoipa::path(patch, path = "/v1/api-keys/{x}",
    tag = "auth", operation_id = "update_api_key", params(("x" = String, Path, description = "Id or prefix")),
    request_body(content = KeyChange, content_type = "application/merge-patch+json"),
    responses((status = 200, body = KeyView), (status = "default", body = Problem)))]
pub async fn patch_key(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<Answer<KeyView>> {
    let view = tenancy::write(&app.pool, caller.actor(), async |tx| {
        let current = service::find(tx, &path).await?;
        etag::check(&request, current.version)?;
        let shown = serde_json::to_value(&current).map_err(Error::internal)?;
        let read_only =
            ["id", "prefix", "expires_at", "revoked_at", "last_used_at", "created_at", "updated_at", "version", "key"];
        let change: KeyChange = crate::http::bounds::read(merge_patch::apply(shown, body.value.clone(), &read_only)?)?;
        validate::check(&change)?;
        service::may_give(&caller, &change.scopes)?;
        let names: Vec<&str> = change.scopes.iter().map(|s| s.as_str()).collect();
        let row = sqlx::query("UPDATE api_key SET name = $3, scopes = $4 WHERE tenant_id = $1 AND id = $2 RETURNING *")
            .bind(tx.tenant())
            .bind(current.id)
            .bind(&change.name)
            .bind(&names)
            .fetch_one(&mut *tx.connection().await)
            .await?;
        KeyView::of(&row)
    })
    .await?;
    app.keys.forget();
    Ok(Answer::versioned(view.version, view))
}

/// Revokes a key.
///
/// Within a second, neither the key nor its tokens are accepted. Its record stays.
#[utoipa::path(delete, path = "/v1/api-keys/{x}",
    tag = "auth", operation_id = "delete_api_key", params(("x" = String, Path, description = "Id or prefix")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete_key(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<Answer<()>> {
    let expected = Expected::by(&request);
    tenancy::write(&app.pool, caller.actor(), async |tx| service::revoke(tx, &expected, &path).await).await?;
    app.keys.forget();
    Ok(Answer::no_content())
}

/// Describes the credential: its type, scopes and expiry, and the campaign and character it is for.
#[utoipa::path(get, path = "/v1/whoami",
    tag = "auth", operation_id = "get_whoami",
    responses((status = 200, body = Whoami), (status = "default", body = Problem)))]
pub async fn whoami(app: web::Data<Edge>, caller: Caller) -> Result<Answer<Whoami>> {
    Ok(Answer::ok(describe(&app, &caller).await?))
}
