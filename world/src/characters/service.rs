//! Gives characters passive skills.

use entity::{character, shapes::Feature};
use sqlx::types::Json;

use super::sheet_fits;
use base::error::{Error, Result};
use db::tenancy::TenantTx;

/// The most features to which a passive skill is added.
const FEATURES_MAX: usize = 200;

/// Gives a character, whose row is locked, a passive skill as a feature. One statement.
///
/// # Errors
/// `validation_failed` if the character has a feature of this name, `payload_too_large`; database errors.
pub async fn grant_skill(tx: &TenantTx, mut character: character::Model, skill: Feature) -> Result<()> {
    let features = &mut character.features.0;
    if features.iter().any(|feature| feature.name.eq_ignore_ascii_case(&skill.name)) {
        let why = format!("{} already has a feature with this name.", character.name);
        return Err(Error::invalid("/name", "invalid_value", why));
    }
    if features.len() >= FEATURES_MAX {
        let why =
            format!("{} already has {FEATURES_MAX} features, the most that a character can have.", character.name);
        return Err(Error::invalid("/name", "invalid_value", why));
    }
    features.push(skill);
    sheet_fits(&character)?;
    sqlx::query("UPDATE character SET features = $3 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(character.id.0)
        .bind(Json(&character.features.0))
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}
