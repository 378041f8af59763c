//! Links as game masters and programs manage them.

use garde::Validate;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{KEY_NAME, NewLink, forget, key_of, path};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::{self, TenantTx};
use edge::{
    auth::{player, service::store_key},
    caller::{Caller, Scope, keys::NewKey},
    http::{
        Answer, Written,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::{Items, NoFilter, Page, contains, pattern},
        resource::{Ref, campaign_id},
        validate, write,
    },
    limits,
    state::Edge,
};

/// The version of every link, because nothing of it can be changed.
pub(super) const VERSION: i64 = 1;
/// The longest life of a link with an end.
const LASTS_MAX: Duration = Duration::days(3650);

/// A link with which somebody plays a character in a browser.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlayerLink {
    pub id: Uuid,
    /// The character that it plays.
    pub player_id: Uuid,
    pub player_slug: String,
    /// For whom it is.
    pub name: String,
    /// The link itself. Null if it can no longer be read, because the server's secret was changed, and in a replayed answer.
    pub url: Option<String>,
    /// Null: until it is revoked.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// When somebody was at the table with it last, to the minute.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_used_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The pause of the caller's link from which somebody has come back in the last half hour: when it began and ended. One statement, or none
/// without a link.
///
/// # Errors
/// Those of the database.
pub async fn pause(tx: &TenantTx, caller: &Caller) -> Result<Option<(OffsetDateTime, OffsetDateTime)>> {
    let Some(link) = caller.link else { return Ok(None) };
    let sql = "SELECT away_since, back_at FROM player_link WHERE tenant_id = $1 AND id = $2 AND back_at > now() - interval '30 minutes'";
    let found = sqlx::query(sql).bind(tx.tenant()).bind(link).fetch_optional(&mut *tx.connection().await).await?;
    found.map(|row| row.read_all()).transpose()
}

/// A link to make.
#[derive(Clone, Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct PlayerLinkInput {
    /// The character that it plays, by id or slug.
    #[garde(length(chars, min = 1, max = 200))]
    #[schema(min_length = 1, max_length = 200)]
    pub player_id: String,
    /// For whom it is.
    #[garde(custom(line_or_nothing))]
    #[serde(default)]
    #[schema(max_length = 200)]
    pub name: String,
    /// When it ends, at most ten years from now. By default it lasts until it is revoked.
    #[serde(default, with = "base::clock::optional_rfc3339")]
    pub expires_at: Option<OffsetDateTime>,
}

fn line_or_nothing(name: &str, cx: &()) -> garde::Result {
    if name.trim().is_empty() { Ok(()) } else { validate::line(name, cx) }
}

/// The columns of a link that still exists: it was not revoked, and its key is valid.
const LINKS: &str = "SELECT l.id, l.player_id, p.slug AS player_slug, l.name, l.sealed, l.expires_at, l.last_used_at, l.created_at, \
       c.slug AS campaign_slug FROM player_link l \
     JOIN campaign c ON c.tenant_id = l.tenant_id AND c.id = l.campaign_id \
     JOIN character p ON p.tenant_id = l.tenant_id AND p.id = l.player_id \
     JOIN api_key k ON k.tenant_id = l.tenant_id AND k.id = l.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) \
     WHERE l.tenant_id = $1 AND l.campaign_id = $2 AND l.revoked_at IS NULL";

/// A row of [`LINKS`].
type Row =
    (Uuid, Uuid, String, String, Vec<u8>, Option<OffsetDateTime>, Option<OffsetDateTime>, OffsetDateTime, String);

/// Where links are read for somebody.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub app: &'a Edge,
    pub caller: &'a Caller,
    /// The campaign, by id or slug.
    pub campaign: &'a Ref,
    /// The address of the server, with which links begin.
    pub address: &'a str,
}

impl Place<'_> {
    fn link_of(&self, row: &PgRow) -> Result<PlayerLink> {
        let (id, player_id, player_slug, name, sealed, expires_at, last_used_at, created_at, campaign_slug): Row =
            row.read_all()?;
        let secret = self.app.secrets.open(self.caller.tenant_id(), &sealed).ok();
        let url = secret.map(|secret| format!("{}{}", self.address, path(&campaign_slug, &secret)));
        Ok(PlayerLink { id, player_id, player_slug, name, url, expires_at, last_used_at, created_at })
    }

    /// A page of the campaign's links, also of those that have ended by themselves.
    ///
    /// # Errors
    /// `not_found`; `bad_request` for any other order than by creation.
    pub async fn list(&self, tx: &TenantTx, page: &Page<NoFilter>) -> Result<Items<PlayerLink>> {
        let campaign = campaign_id(tx, self.caller, self.campaign).await?;
        let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
        let rows = sqlx::query(AssertSqlSafe(format!(
            "{LINKS} AND ($3::uuid IS NULL OR l.id {sign} $3) AND {} AND ($6::timestamptz IS NULL OR l.created_at >= $6) \
             ORDER BY l.id {order} LIMIT $4",
            contains(5, &["l.name", "p.slug", "p.name"])
        )))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(page.after.as_ref().map(|after| after.id))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .bind(page.q.as_deref().map(pattern))
        .bind(page.updated_since)
        .fetch_all(&mut *tx.connection().await)
        .await?;
        let links = stored::each(&rows, |row| self.link_of(row));
        Ok(page.finish(links, page.has_more(&rows), |link| (link.id, None)))
    }

    /// One of the campaign's links.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn get(&self, tx: &TenantTx, id: &str) -> Result<PlayerLink> {
        let campaign = campaign_id(tx, self.caller, self.campaign).await?;
        let id = Uuid::try_parse(id).map_err(|_| Error::not_found("player link"))?;
        let row = sqlx::query(AssertSqlSafe(format!("{LINKS} AND l.id = $3")))
            .bind(tx.tenant())
            .bind(campaign)
            .bind(id)
            .fetch_optional(&mut *tx.connection().await)
            .await?;
        self.link_of(&row.ok_or_else(|| Error::not_found("player link"))?)
    }

    /// Makes a link. If the tenant has no key for links, a caller who may create keys gets one. What the request's key stores has no `url`.
    ///
    /// # Errors
    /// `validation_failed`, `quota_exceeded`; `conflict` if there is no key and the caller may not create one.
    pub async fn create(&self, input: &PlayerLinkInput, once: Option<&IdempotencyKey>) -> Result<Written<PlayerLink>> {
        validate::check(input)?;
        let now = clock::now();
        if input.expires_at.is_some_and(|at| at <= now || at > clock::later(now, LASTS_MAX)) {
            let message = "The end must be in the future, at most ten years from now.";
            return Err(Error::invalid("/expires_at", "invalid_value", message));
        }
        let url = std::cell::Cell::new(None);
        let made = write(self.app, self.caller, once, async |tx| {
            let campaign = campaign_id(tx, self.caller, self.campaign).await?;
            let player = player::id(tx, campaign, &input.player_id).await?;
            let key = self.key(tx, input.expires_at).await?;
            forget(&mut *tx.connection().await, tx.tenant()).await?;
            limits::check_rows(tx, self.caller.tenant.limits.rows_per_kind, "player_link").await?;
            let new = NewLink {
                tenant: tx.tenant(),
                campaign,
                player,
                key,
                name: input.name.trim(),
                author: self.caller.author(),
                expires_at: input.expires_at,
            };
            let (id, _) = new.store(&mut *tx.connection().await, &self.app.secrets).await?;
            let mut link = self.get(tx, &id.to_string()).await?;
            url.set(link.url.take());
            Ok(Answer::created(format!("/v1/campaigns/{campaign}/player-links/{id}"), VERSION, link))
        });
        Ok(made.await?.map(|link| PlayerLink { url: url.take(), ..link }))
    }

    /// The key for a link that lasts until `end`. A caller who may create keys gets one if there is none; two at the same time get the same one.
    async fn key(&self, tx: &TenantTx, end: Option<OffsetDateTime>) -> Result<Uuid> {
        let known = async || key_of(&mut *tx.connection().await, tx.tenant(), end).await;
        if let Some(key) = known().await? {
            return Ok(key);
        }
        if !self.caller.scopes.has(Scope::Admin) || self.caller.is_narrowed() {
            let why = "A player link needs an API key with the scopes `read` and `play` that lasts as long as the link. Ask an \
                administrator to create one.";
            return Err(Error::new(Code::Conflict, why));
        }
        sqlx::query("SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE")
            .bind(tx.tenant())
            .fetch_one(&mut *tx.connection().await)
            .await?;
        if let Some(key) = known().await? {
            return Ok(key);
        }
        let scopes = [Scope::Read, Scope::Play];
        let new = NewKey::generate();
        store_key(&mut *tx.connection().await, tx.tenant(), &new, KEY_NAME, &scopes, None).await?.read("id")
    }

    /// Revokes a link. Nobody comes to the table with it any more, and who is there is told within a few seconds.
    ///
    /// # Errors
    /// `not_found`, `precondition_failed`.
    pub async fn revoke(&self, expected: &Expected, id: &str) -> Result<PlayerLink> {
        let revoked = tenancy::write(&self.app.pool, self.caller.actor(), async |tx| {
            let link = self.get(tx, id).await?;
            expected.check(VERSION)?;
            sqlx::query("UPDATE player_link SET revoked_at = now() WHERE tenant_id = $1 AND id = $2")
                .bind(tx.tenant())
                .bind(link.id)
                .execute(&mut *tx.connection().await)
                .await?;
            Ok(link)
        });
        let revoked = revoked.await?;
        self.app.keys.forget();
        Ok(revoked)
    }
}
