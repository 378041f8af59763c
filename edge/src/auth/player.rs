//! Player characters, as credentials and requests name them.

use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use uuid::Uuid;

use crate::http::resource::Ref;

/// The id of a player character that a request's body names by id or slug.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/player_id`.
pub async fn id(tx: &TenantTx, campaign: Uuid, player: &str) -> Result<Uuid> {
    find(tx, campaign, player).await?.ok_or_else(|| {
        Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
    })
}

/// The id of a character by id or slug, if it exists.
///
/// # Errors
/// Those of the database.
pub async fn find(tx: &TenantTx, campaign: Uuid, name: &str) -> Result<Option<Uuid>> {
    let (id, slug) = match Ref::parse(name) {
        Ref::Id(id) => (Some(id), None),
        Ref::Slug(slug) => (None, Some(slug)),
    };
    let row =
        sqlx::query("SELECT id FROM character WHERE tenant_id = $1 AND campaign_id = $2 AND (id = $3 OR slug = $4)")
            .bind(tx.tenant())
            .bind(campaign)
            .bind(id)
            .bind(slug)
            .fetch_optional(&mut *tx.connection().await)
            .await?;
    row.map(|row| row.read("id")).transpose()
}
