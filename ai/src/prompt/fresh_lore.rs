//! The lore of scopes as it is now: from the cache, if its version heads have not changed.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    cache::{Prompts, StampedLore},
    heads::Heads,
    lore::ScopeLore,
    scope::LoreScope,
};
use base::{error::Result, stored::Columns};
use db::tenancy::TenantTx;

/// The lore of scopes as of their heads. Uses the cache if it is not outdated.
pub(super) async fn cached_lore(
    prompts: &Prompts,
    tx: &TenantTx,
    campaign: Uuid,
    scopes: &[LoreScope],
    known: &Heads,
) -> Result<Vec<Arc<ScopeLore>>> {
    let mut out = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let version = known.get(&scope.head()).copied().unwrap_or_default();
        let key = (campaign, scope.clone());
        if let Some(held) = prompts.lore.get(tx.tenant(), &key).filter(|held| held.version == version) {
            out.push(held.lore.clone());
            continue;
        }
        let lore = Arc::new(ScopeLore::load(tx, campaign, scope).await?);
        prompts.lore.put(tx.tenant(), key, Arc::new(StampedLore { version, lore: lore.clone() }));
        out.push(lore);
    }
    Ok(out)
}

/// The present lore of scopes, which may include [`LoreScope::any`], and the versions of their heads. One statement for cached
/// lore.
///
/// # Errors
/// Database errors.
pub async fn lore_now(
    prompts: &Prompts,
    tx: &TenantTx,
    campaign: Uuid,
    scopes: &[LoreScope],
) -> Result<(Vec<Arc<ScopeLore>>, Vec<i64>)> {
    let keys: Vec<String> = scopes.iter().map(LoreScope::head).collect();
    let row = sqlx::query("SELECT lore_heads($1, $2, $3) AS versions")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(&keys)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let versions: Vec<i64> = row.read("versions")?;
    let known = keys.into_iter().zip(versions.iter().copied()).collect();
    Ok((cached_lore(prompts, tx, campaign, scopes, &known).await?, versions))
}
