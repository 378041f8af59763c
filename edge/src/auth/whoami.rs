//! `/v1/whoami` describes a credential and what it allows, for frontends that were given one.
//!
//! A restricted token learns nothing about its tenant except its own campaign and character.

use serde::Serialize;
use sqlx::postgres::PgRow;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::caller::{Caller, Scope};
use crate::state::Edge;
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// The key and everything it may be restricted to, in one statement.
const WHO: &str = "SELECT k.name AS key_name, k.expires_at, t.slug AS tenant, \
           c.slug AS campaign_slug, c.name AS campaign_name, p.slug AS player_slug, p.name AS player_name \
    FROM api_key k JOIN tenant t ON t.tenant_id = k.tenant_id \
        LEFT JOIN campaign c ON c.tenant_id = k.tenant_id AND c.id = $3 \
        LEFT JOIN character p ON p.tenant_id = k.tenant_id AND p.campaign_id = $3 AND p.id = $4 \
    WHERE k.tenant_id = $1 AND k.id = $2";

/// The type of a credential.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CredentialKind {
    /// An API key. It is valid until it expires or is revoked.
    ApiKey,
    /// A token that a key was exchanged for.
    AccessToken,
}

/// The caller and what the credential allows.
#[derive(Debug, Serialize, ToSchema)]
pub struct Whoami {
    kind: CredentialKind,
    tenant_id: Uuid,
    /// The tenant's slug; null for a restricted token.
    #[schema(required)]
    tenant_slug: Option<String>,
    /// The public part of the API key, or of the key that the token was exchanged for.
    key_prefix: String,
    /// The key's name; null for a restricted token.
    #[schema(required)]
    key_name: Option<String>,
    scopes: Vec<Scope>,
    /// The one campaign that the token is for.
    #[schema(required)]
    campaign: Option<NarrowedTo>,
    /// The one player character that the token is for.
    #[schema(required)]
    player: Option<NarrowedTo>,
    /// When the credential expires; null if it does not.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
}

/// The row that a token is restricted to.
#[derive(Debug, Serialize, ToSchema)]
struct NarrowedTo {
    id: Uuid,
    slug: String,
    name: String,
}

impl NarrowedTo {
    /// None if the row is gone.
    fn read(row: &PgRow, id: Option<Uuid>, slug: &str, name: &str) -> Result<Option<Self>> {
        let (Some(id), Some(slug)) = (id, row.read(slug)?) else { return Ok(None) };
        Ok(Some(Self { id, slug, name: row.read(name)? }))
    }
}

/// Describes the caller. One statement.
///
/// # Errors
/// `not_found` if the key is gone.
pub(super) async fn describe(app: &Edge, caller: &Caller) -> Result<Whoami> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let row = sqlx::query(WHO)
        .bind(caller.tenant_id())
        .bind(caller.key)
        .bind(caller.campaign)
        .bind(caller.player)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("api_key"))?;
    let of_tenant = |column| if caller.is_narrowed() { Ok(None) } else { row.read(column) };
    let ends = match caller.token_until {
        Some(seconds) => OffsetDateTime::from_unix_timestamp(seconds).ok(),
        None => row.read("expires_at")?,
    };
    Ok(Whoami {
        kind: if caller.is_token { CredentialKind::AccessToken } else { CredentialKind::ApiKey },
        tenant_id: caller.tenant_id(),
        tenant_slug: of_tenant("tenant")?,
        key_prefix: caller.key_prefix.clone(),
        key_name: of_tenant("key_name")?,
        scopes: caller.scopes.iter().collect(),
        campaign: NarrowedTo::read(&row, caller.campaign, "campaign_slug", "campaign_name")?,
        player: NarrowedTo::read(&row, caller.player, "player_slug", "player_name")?,
        expires_at: ends.and_then(|at| at.format(&Rfc3339).ok()),
    })
}
