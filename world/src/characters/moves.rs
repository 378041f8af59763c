//! Moves characters. A new place counts as an action, if the campaign says so.

use uuid::Uuid;

use crate::significance::report::{ActionReport, Source, report_own};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::resource::scope_key;

/// Moves a character, which counts as an action. Returns its new version.
///
/// # Errors
/// `not_found` if it no longer exists.
pub async fn move_to(tx: &TenantTx, campaign: Uuid, character: Uuid, location: &str) -> Result<i64> {
    let row = sqlx::query(
        "UPDATE character c SET location = $3 FROM (SELECT id, location FROM character WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE) b \
         WHERE c.tenant_id = $1 AND c.id = b.id RETURNING c.version, c.name, b.location AS before",
    )
    .bind(tx.tenant())
    .bind(character)
    .bind(location)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let row = row.ok_or_else(|| Error::not_found("character"))?;
    let before: Option<String> = row.read("before")?;
    moved(tx, campaign, (character, row.read("name")?), (before.as_deref(), Some(location))).await?;
    row.read("version")
}

/// Counts a change of a character's location as the action `move`, if the campaign says so. No statement if it is the same place.
///
/// # Errors
/// Database errors.
pub async fn moved(
    tx: &TenantTx,
    campaign: Uuid,
    (character, name): (Uuid, &str),
    (before, after): (Option<&str>, Option<&str>),
) -> Result<()> {
    let Some(place) = after.filter(|after| Some(scope_key(after)) != before.map(scope_key)) else { return Ok(()) };
    let seen = ActionReport::observed(character, "move", Vec::new(), &format!("{name} goes to {place}."));
    report_own(tx, campaign, &seen, Source::Move).await
}
