//! Finding characters by what others call them.

use uuid::Uuid;

use crate::{
    error::{Error, Result},
    http::resource::Ref,
    stored::Columns,
    tenancy::TenantTx,
};

/// The id of a player character named by id or slug in a request's body.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/player_id`.
pub async fn player_id(tx: &TenantTx, campaign: Uuid, player: &str) -> Result<Uuid> {
    find(tx, campaign, player).await?.ok_or_else(|| {
        Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
    })
}

/// Moves a character; gives its version from then on.
///
/// # Errors
/// `not_found` if it is gone.
pub async fn move_to(tx: &TenantTx, character: Uuid, location: &str) -> Result<i64> {
    let row = sqlx::query("UPDATE character SET location = $3 WHERE tenant_id = $1 AND id = $2 RETURNING version")
        .bind(tx.tenant())
        .bind(character)
        .bind(location)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.ok_or_else(|| Error::not_found("character"))?.read("version")
}

/// The id of a character named by id or slug, if there is one.
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
