//! Creates player links: for the operator, and for users of the editor. A program creates the same link with
//! `POST /v1/auth/token`.

use sqlx::PgConnection;
use uuid::Uuid;

use super::service::{self, KeyInput};
use crate::{
    caller::{
        Caller, Scope,
        jwt::{Claims, Narrowed, Tokens},
    },
    state::Edge,
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// How long a link is valid.
const LINK_SECONDS: i64 = 3600;
/// The name of the key that is created for links if there is none.
const KEY_NAME: &str = "Player links";

/// The path and token of a link for a character. It is bound to an active key of the tenant with the scopes `read` and
/// `play`. `db` is a connection of the schema owner.
///
/// # Errors
/// `not_found` if the tenant, campaign or character does not exist, `conflict` without such a key.
pub async fn make(
    db: &mut PgConnection,
    tokens: &Tokens,
    (tenant, campaign, player): (&str, &str, &str),
) -> Result<String> {
    let row = sqlx::query(
        "SELECT t.tenant_id, c.id AS campaign, p.id AS player, (SELECT k.prefix FROM api_key k \
             WHERE k.tenant_id = t.tenant_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) \
               AND k.scopes @> ARRAY['read', 'play'] ORDER BY k.created_at LIMIT 1) AS key \
         FROM tenant t JOIN campaign c ON c.tenant_id = t.tenant_id AND c.slug = $2 \
         JOIN character p ON p.tenant_id = t.tenant_id AND p.campaign_id = c.id AND p.slug = $3 WHERE t.slug = $1",
    )
    .bind(tenant)
    .bind(campaign)
    .bind(player)
    .fetch_optional(db)
    .await?
    .ok_or_else(|| Error::not_found("tenant, campaign or character"))?;
    let key: Option<String> = row.read("key")?;
    let key = key.ok_or_else(|| {
        Error::new(
            Code::Conflict,
            "A player link needs an API key. Create one with the scopes `read` and `play` first.",
        )
    })?;
    signed(tokens, &key, row.read("tenant_id")?, (campaign, row.read("campaign")?), row.read("player")?)
}

/// The same for a user of the editor, who has the scopes of the link. If the tenant has no key for it, a user who may create keys gets
/// one.
///
/// # Errors
/// `forbidden` without the scopes, `conflict` if there is no key and the user may not create one.
pub async fn for_user(
    app: &Edge,
    caller: &Caller,
    (campaign, campaign_id): (&str, Uuid),
    player: Uuid,
) -> Result<String> {
    caller.needs(Scope::Read, "A player link")?;
    caller.needs(Scope::Play, "A player link")?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let known = sqlx::query(
        "SELECT prefix FROM api_key WHERE tenant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now() + $2 * interval '1 second') \
           AND scopes @> ARRAY['read', 'play'] ORDER BY name = $3 DESC, created_at LIMIT 1",
    )
    .bind(caller.tenant_id())
    .bind(LINK_SECONDS as f64)
    .bind(KEY_NAME)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    drop(tx);
    let key = match known {
        Some(row) => row.read("prefix")?,
        None if caller.scopes.has(Scope::Admin) => {
            let scopes = [Scope::Read, Scope::Play].into_iter().collect();
            let input = KeyInput { name: KEY_NAME.to_owned(), scopes, expires_in_seconds: None };
            let made = service::create(app, caller, input, None).await?;
            made.value()?.prefix
        }
        None => {
            let why =
                "A player link needs an API key with the scopes `read` and `play`. Ask an administrator to create one.";
            return Err(Error::new(Code::Conflict, why));
        }
    };
    signed(&app.tokens, &key, caller.tenant_id(), (campaign, campaign_id), player)
}

fn signed(
    tokens: &Tokens,
    key: &str,
    tenant: Uuid,
    (campaign, campaign_id): (&str, Uuid),
    player: Uuid,
) -> Result<String> {
    let narrowed = Narrowed { scope: "read play".to_owned(), campaign: Some(campaign_id), player: Some(player) };
    let token = tokens.sign(&Claims::of_token(key, tenant, narrowed, LINK_SECONDS))?;
    Ok(format!("/play/{campaign}#{token}"))
}
