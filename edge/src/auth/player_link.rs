//! Creates a player link for the operator. A game master creates the same link with `POST /v1/auth/token`.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::caller::jwt::{Claims, Narrowed, Tokens};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};

/// How long a link is valid.
const LINK_SECONDS: i64 = 3600;

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
    let (campaign_id, player_id): (Uuid, Uuid) = (row.read("campaign")?, row.read("player")?);
    let narrowed = Narrowed { scope: "read play".to_owned(), campaign: Some(campaign_id), player: Some(player_id) };
    let token = tokens.sign(&Claims::of_token(&key, row.read("tenant_id")?, narrowed, LINK_SECONDS))?;
    Ok(format!("/play/{campaign}#{token}"))
}
