//! The links of players: `pl_<43 characters>`. The database finds a link by the hash of its secret. Who manages links is above
//! (`world::player_links`); here is what a credential needs.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Scope,
    jwt::{Claims, Narrowed},
    secret::Secret,
};
use base::{error::Result, stored::Columns, watched::Watched};
use db::pool::Pool;

/// How a link's secret begins.
const PREFIX: &str = "pl_";

/// The secret of a link.
pub struct LinkSecret(Secret);

impl LinkSecret {
    /// 256 random bits.
    #[must_use]
    pub fn generate() -> Self {
        Self(Secret::generate())
    }

    /// Parses what follows the `#` of a link. None if it does not look like a link's secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix(PREFIX).and_then(Secret::parse).map(Self)
    }

    /// The secret as it is written in a link.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", self.0.reveal())
    }

    /// What the database stores.
    #[must_use]
    pub fn hash(&self) -> Vec<u8> {
        self.0.hash()
    }

    /// The claims of a visit by this link, if the link works.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn visit(&self, pool: &Pool) -> Result<Option<Claims>> {
        let row =
            sqlx::query("SELECT tenant_id, id, key_prefix, campaign_id, player_id, expires_at FROM player_link_of($1)")
                .bind(self.hash())
                .fetch_optional(&mut *pool.acquire().await?)
                .await?;
        let Some(row) = row else { return Ok(None) };
        let (tenant, link, key, campaign, player, end): (Uuid, Uuid, String, Uuid, Uuid, Option<OffsetDateTime>) =
            row.read_all()?;
        let scope = [Scope::Read, Scope::Play].map(Scope::as_str).join(" ");
        let narrowed = Narrowed { scope, campaign: Some(campaign), player: Some(player) };
        let until = end.map(OffsetDateTime::unix_timestamp);
        Ok(Some(Claims::of_visit(&key, tenant, narrowed, Some(link), until)))
    }
}

/// A tenant and one of its links.
type Link = (Uuid, Uuid);

/// Asks which of the links by which somebody is at a table no longer work, and tells their watchers. One statement, or none if there are
/// none.
///
/// # Errors
/// Those of the database.
pub async fn tell(open: &Watched<Link, bool>, pool: &Pool) -> Result<()> {
    let links = open.keys();
    if links.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query("SELECT tenant_id, id FROM player_links_over($1, $2)")
        .bind(links.iter().map(|link| link.0).collect::<Vec<_>>())
        .bind(links.iter().map(|link| link.1).collect::<Vec<_>>())
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    for row in &rows {
        open.tell(&row.read_all()?, true);
    }
    Ok(())
}
