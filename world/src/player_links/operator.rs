//! Links that the operator makes on the command line. The connection is the schema owner's.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{NewLink, forget, key_of, path};
use base::{
    error::{Code, Error, Result},
    secrets::Secrets,
    stored::Columns,
};

/// For whom a link is, by slugs.
#[derive(Clone, Copy)]
pub struct Whom<'a> {
    pub tenant: &'a str,
    pub campaign: &'a str,
    pub player: &'a str,
}

/// The path of a new link that lasts until `expires_at`, or until it is revoked.
///
/// # Errors
/// `not_found` if the tenant, campaign or character does not exist, `conflict` if the tenant has no key for it.
pub async fn make(
    db: &mut PgConnection,
    secrets: &Secrets,
    whom: Whom<'_>,
    name: &str,
    expires_at: Option<OffsetDateTime>,
) -> Result<String> {
    let found = Found::of(db, whom).await?;
    make_for(db, secrets, &found, (whom.campaign, name), expires_at).await
}

async fn make_for(
    db: &mut PgConnection,
    secrets: &Secrets,
    found: &Found,
    (campaign_slug, name): (&str, &str),
    expires_at: Option<OffsetDateTime>,
) -> Result<String> {
    let &Found { tenant, campaign, player } = found;
    let key = key_of(&mut *db, tenant, expires_at).await?.ok_or_else(|| {
        Error::new(
            Code::Conflict,
            "A player link needs an API key that lasts as long as the link. Create one with the scopes `read` and `play` first.",
        )
    })?;
    forget(&mut *db, tenant).await?;
    let (_, secret) =
        NewLink { tenant, campaign, player, key, name, author: None, expires_at }.store(db, secrets).await?;
    Ok(path(campaign_slug, &secret.reveal()))
}

/// The path of the newest link with this name that still works, or of a new one that lasts until it is revoked.
///
/// # Errors
/// As for [`make`].
pub async fn find_or_make(db: &mut PgConnection, secrets: &Secrets, whom: Whom<'_>, name: &str) -> Result<String> {
    let found = Found::of(db, whom).await?;
    let Found { tenant, player, .. } = found;
    let row = sqlx::query(
        "SELECT l.sealed FROM player_link l JOIN api_key k ON k.tenant_id = l.tenant_id AND k.id = l.key_id \
         WHERE l.tenant_id = $1 AND l.player_id = $2 AND l.name = $3 AND l.revoked_at IS NULL AND l.expires_at IS NULL \
           AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) ORDER BY l.id DESC LIMIT 1",
    )
    .bind(tenant)
    .bind(player)
    .bind(name)
    .fetch_optional(&mut *db)
    .await?;
    let sealed = row.map(|row| row.read::<Vec<u8>>("sealed")).transpose()?;
    match sealed.and_then(|sealed| secrets.open(tenant, &sealed).ok()) {
        Some(secret) => Ok(path(whom.campaign, &secret)),
        None => make_for(db, secrets, &found, (whom.campaign, name), None).await,
    }
}

struct Found {
    tenant: Uuid,
    campaign: Uuid,
    player: Uuid,
}

impl Found {
    async fn of(db: &mut PgConnection, whom: Whom<'_>) -> Result<Self> {
        let row = sqlx::query(
            "SELECT t.tenant_id, c.id AS campaign, p.id AS player FROM tenant t \
             JOIN campaign c ON c.tenant_id = t.tenant_id AND c.slug = $2 AND c.removed_at IS NULL \
             JOIN character p ON p.tenant_id = t.tenant_id AND p.campaign_id = c.id AND p.slug = $3 WHERE t.slug = $1",
        )
        .bind(whom.tenant)
        .bind(whom.campaign)
        .bind(whom.player)
        .fetch_optional(db)
        .await?
        .ok_or_else(|| Error::not_found("tenant, campaign or character"))?;
        let (tenant, campaign, player) = row.read_all()?;
        Ok(Self { tenant, campaign, player })
    }
}
