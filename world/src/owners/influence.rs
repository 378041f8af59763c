//! Influence is what owners pay for tools with. The server knows the prices; a model does not.
//!
//! A payment is part of the transaction of the call that it pays for, and the owner's row stays locked until that
//! transaction ends. So concurrent payments never spend more than there is. A payment does not outdate any prompt.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use uuid::Uuid;

use crate::tools;
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};

use super::Influence;

/// The campaign's setting with the prices of tools.
pub const TOOL_PRICES: &str = "tool_prices";

/// What tools cost the owners of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Prices(BTreeMap<String, f64>);

impl Prices {
    /// The prices in a campaign's settings. A price that cannot be read counts as not set.
    #[must_use]
    pub fn of(settings: &Extensions) -> Self {
        let set = settings.get(TOOL_PRICES).and_then(|prices| prices.as_object()).into_iter().flatten();
        let set = set.filter_map(|(name, price)| Some((name.clone(), price.as_f64()?)));
        Self(set.filter(|(_, price)| price.is_finite() && *price >= 0.0).collect())
    }

    /// The price of one call to a tool.
    #[must_use]
    pub fn price(&self, tool: &str) -> f64 {
        let set = self.0.get(tool).copied();
        set.or_else(|| tools::PRICES.iter().find(|(name, _)| *name == tool).map(|(_, price)| *price)).unwrap_or(0.0)
    }
}

/// Checks that an owner has enough for a call of a tool, and locks its row, so that this stays true until the transaction ends. One
/// statement.
///
/// # Errors
/// `insufficient_influence`; database errors.
pub async fn needs(tx: &TenantTx, owner: Uuid, tool: &str, price: f64) -> Result<()> {
    let row = sqlx::query(
        "SELECT influence_of(to_jsonb(o), now()) AS had FROM owner o WHERE o.tenant_id = $1 AND o.id = $2 FOR NO KEY UPDATE",
    )
    .bind(tx.tenant())
    .bind(owner)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("owner"))?;
    let had: f64 = row.read("had")?;
    if had >= price {
        return Ok(());
    }
    let message = format!("`{tool}` costs {} influence, and you have {}.", points(price), points(had));
    Err(Error::new(Code::InsufficientInfluence, message))
}

/// Spends influence for which [`needs`] was called in this transaction. One statement.
///
/// # Errors
/// Database errors.
pub async fn spend(tx: &TenantTx, owner: Uuid, price: f64) -> Result<()> {
    let spent = sqlx::query("SELECT is_spent FROM spend_influence($1, $2, $3)")
        .bind(tx.tenant())
        .bind(owner)
        .bind(price)
        .fetch_one(&mut *tx.connection().await)
        .await?
        .read::<Option<bool>>("is_spent")?;
    if spent == Some(true) { Ok(()) } else { Err(Error::internal("an owner lost influence while it was locked")) }
}

/// The influence that an owner has at this moment. None if there is no such owner. One statement.
///
/// # Errors
/// Database errors.
pub async fn now(tx: &TenantTx, owner: Uuid) -> Result<Option<Influence>> {
    let row = sqlx::query(
        "SELECT influence_current, influence_max, influence_regen_per_hour, influence_at FROM owner WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(owner)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let stored = Influence {
        current: row.read("influence_current")?,
        max: row.read("influence_max")?,
        regen_per_hour: row.read("influence_regen_per_hour")?,
    };
    Ok(Some(Influence { current: stored.at(row.read("influence_at")?, clock::now()), ..stored }))
}

/// The same, outside of a transaction.
///
/// # Errors
/// Database errors.
pub async fn look(pool: &Pool, tenant: Uuid, owner: Uuid) -> Result<Option<Influence>> {
    now(&TenantTx::read(pool, tenant).await?, owner).await
}

/// Points as people read them: without a fraction, unless it matters. Never more than there are.
#[must_use]
pub fn points(points: f64) -> String {
    let short = (points * 10.0 + 1e-6).floor() / 10.0;
    format!("{short}")
}
