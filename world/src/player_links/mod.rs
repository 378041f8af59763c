//! The links with which players open the table in a browser. A link plays one character until it is revoked, until its end, or until its key is
//! no longer valid.
//!
//! [`http`] has the routes, [`service`] what they and the editor do, [`operator`] what the command line does. How a link lets somebody in is in
//! `edge::caller::links`.

pub mod http;
pub mod operator;
pub mod service;

use sqlx::{PgExecutor, postgres::PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use base::{clock, error::Result, secrets::Secrets, stored::Columns};
use edge::caller::links::LinkSecret;

/// The name of the key that is created for links if there is none.
const KEY_NAME: &str = "Player links";
/// How many days a link is listed that ended by itself.
const KEPT_DAYS: i32 = 30;

/// A link to store.
struct NewLink<'a> {
    tenant: Uuid,
    campaign: Uuid,
    player: Uuid,
    /// The key by whose scopes it plays.
    key: Uuid,
    name: &'a str,
    /// The user or key that makes it.
    author: Option<Uuid>,
    expires_at: Option<OffsetDateTime>,
}

impl NewLink<'_> {
    /// Stores the link. Returns its id and its secret.
    async fn store(&self, db: impl PgExecutor<'_>, secrets: &Secrets) -> Result<(Uuid, LinkSecret)> {
        let (id, secret) = (clock::id(), LinkSecret::generate());
        sqlx::query(
            "INSERT INTO player_link (tenant_id, id, campaign_id, player_id, key_id, name, author, hash, sealed, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(self.tenant)
        .bind(id)
        .bind(self.campaign)
        .bind(self.player)
        .bind(self.key)
        .bind(self.name)
        .bind(self.author)
        .bind(secret.hash())
        .bind(secrets.seal(self.tenant, &secret.reveal())?)
        .bind(self.expires_at)
        .execute(db)
        .await?;
        Ok((id, secret))
    }
}

/// Deletes a tenant's links that nobody can see any more: those that were revoked, those whose key is no longer valid, and those that ended
/// by themselves long ago.
async fn forget(db: impl PgExecutor<'_>, tenant: Uuid) -> Result<()> {
    sqlx::query(
        "DELETE FROM player_link l USING api_key k WHERE l.tenant_id = $1 AND k.tenant_id = $1 AND k.id = l.key_id \
           AND (l.revoked_at IS NOT NULL OR l.expires_at < now() - $2 * interval '1 day' \
             OR k.revoked_at IS NOT NULL OR k.expires_at <= now())",
    )
    .bind(tenant)
    .bind(KEPT_DAYS)
    .execute(db)
    .await?;
    Ok(())
}

/// The tenant's key for a link that lasts until `end`, or until it is revoked: one that lasts as long. The one made for links is the first choice.
async fn key_of(db: impl PgExecutor<'_>, tenant: Uuid, end: Option<OffsetDateTime>) -> Result<Option<Uuid>> {
    let row = sqlx::query(
        "SELECT id FROM api_key WHERE tenant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at >= $3) \
           AND scopes @> ARRAY['read', 'play'] ORDER BY name = $2 DESC, created_at LIMIT 1",
    )
    .bind(tenant)
    .bind(KEY_NAME)
    .bind(end)
    .fetch_optional(db)
    .await?;
    row.map(|row: PgRow| row.read("id")).transpose()
}

/// The path of a link.
fn path(campaign: &str, secret: &str) -> String {
    format!("/play/{campaign}#{secret}")
}
