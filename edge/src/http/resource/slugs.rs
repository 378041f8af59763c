//! Slugs that are made from names, and the form in which names of locations, races, professions and factions are compared.

use uuid::Uuid;

use super::{Place, Resource};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// A slug made from `label` that is free in its namespace. It stays reserved until the transaction ends. Takes one
/// statement.
///
/// # Errors
/// `slug_taken` if the first 99 candidates are taken.
pub async fn free_slug<R: Resource>(place: &Place<'_>, label: &str) -> Result<String> {
    free_slug_in::<R>(place.tx, place.campaign, label).await
}

/// The slugs that a row with this label may get, in the order in which they are tried.
#[must_use]
pub fn slugs_for<R: Resource>(label: &str) -> Vec<String> {
    let joint = if R::IN_CAMPAIGN { "_" } else { "-" };
    let base = match slug_of(label, joint) {
        // A slug that looks like an id could never be found as a slug.
        Some(slug) if Uuid::try_parse(&slug).is_ok() => format!("{}{joint}{slug}", R::TABLE),
        Some(slug) => slug,
        None => R::TABLE.to_owned(),
    };
    std::iter::once(base.clone()).chain((2..=99).map(|n| format!("{base}{joint}{n}"))).collect()
}

/// Like [`free_slug`], without a caller.
///
/// # Errors
/// `slug_taken` if the first 99 candidates are taken.
pub async fn free_slug_in<R: Resource>(tx: &TenantTx, campaign: Uuid, label: &str) -> Result<String> {
    let candidates = slugs_for::<R>(label);
    let row = sqlx::query("SELECT free_slug($1, $2, $3, $4) AS slug")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(if R::IS_ACTOR { "actor_slug" } else { R::TABLE })
        .bind(&candidates)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    row.read::<Option<String>>("slug")?
        .ok_or_else(|| Error::new(Code::SlugTaken, "Give a slug: all slugs that are made from this name are taken."))
}

/// Makes a slug from a name: lower case ASCII, with `joint` in place of everything else. None if nothing is left.
#[must_use]
pub fn slug_of(text: &str, joint: &str) -> Option<String> {
    slug_within(text, joint, 56)
}

fn slug_within(text: &str, joint: &str, bytes_max: usize) -> Option<String> {
    let mut slug = String::new();
    for c in deunicode::deunicode(text).chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with(joint) {
            slug.push_str(joint);
        }
        if slug.len() >= bytes_max {
            break;
        }
    }
    let slug = slug.trim_end_matches(joint).to_owned();
    (!slug.is_empty()).then_some(slug)
}

/// The form in which locations, races, professions and factions are compared: a slug, so that case and spaces do not
/// matter.
#[must_use]
pub fn scope_key(text: &str) -> String {
    slug_within(text, "_", usize::MAX).unwrap_or_else(|| text.trim().to_lowercase())
}
