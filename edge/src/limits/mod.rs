//! Limits per tenant: requests, tool calls, turns, concurrent turns, rows, tokens per day.
//!
//! They are counted with GCRA in this process ([`local`]). A store shared by replicas would belong behind
//! [`Limits::check`], which every limit passes through. The operator sets a tenant's limits
//! (`tavernkeep tenant limits`); 0 means no limit.

mod class;
mod local;
pub mod sign_in;

use std::net::IpAddr;

use base::rate::Rate;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

pub use class::Class;
pub use local::{Counted, Permit, Permits};

use crate::{caller::Caller, tenants::Tenant};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// Checks that a tenant may add a row of a kind if it may have at most `rows_max`; 0 means no limit. Takes one
/// statement, or none.
///
/// # Errors
/// `quota_exceeded`.
pub async fn check_rows(tx: &TenantTx, rows_max: u64, table: &'static str) -> Result<()> {
    check_rows_more(tx, rows_max, table, 1).await
}

/// Like [`check_rows`], for `more` rows at once.
///
/// # Errors
/// `quota_exceeded`.
pub async fn check_rows_more(tx: &TenantTx, rows_max: u64, table: &'static str, more: u64) -> Result<()> {
    if rows_max == 0 || more == 0 {
        return Ok(());
    }
    let sql = format!("SELECT count(*) AS n FROM (SELECT 1 FROM {table} WHERE tenant_id = $1 LIMIT $2) AS counted");
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(i64::try_from(rows_max).unwrap_or(i64::MAX))
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let n = row.read::<i64>("n")?.unsigned_abs();
    if n.saturating_add(more) > rows_max { Err(rows_exceeded(rows_max, table)) } else { Ok(()) }
}

/// Checks that a tenant does not have too many rows of some kinds, including those that the transaction has added.
/// Takes one statement, or none.
///
/// # Errors
/// `quota_exceeded`.
pub async fn check_rows_kept(tx: &TenantTx, rows_max: u64, tables: &[&'static str]) -> Result<()> {
    if rows_max == 0 {
        return Ok(());
    }
    let counts = tables.iter().map(|table| {
        format!(
            "SELECT '{table}' AS kind FROM (SELECT 1 FROM {table} WHERE tenant_id = $1 LIMIT $2 + 1) AS counted \
             HAVING count(*) > $2"
        )
    });
    let row = sqlx::query(AssertSqlSafe(counts.collect::<Vec<_>>().join(" UNION ALL ")))
        .bind(tx.tenant())
        .bind(i64::try_from(rows_max).unwrap_or(i64::MAX).min(i64::MAX - 1))
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    match row {
        None => Ok(()),
        Some(row) => Err(rows_exceeded(rows_max, row.read("kind")?)),
    }
}

fn rows_exceeded(rows_max: u64, table: &str) -> Error {
    Error::new(Code::QuotaExceeded, format!("This tenant may have at most {rows_max} rows of {table}.")).retry_after(60)
}

/// All limits of this process.
#[derive(Default)]
pub struct Limits {
    local: local::Local,
    /// Attempts to sign in to the editor.
    pub sign_ins: sign_in::SignIns,
    pub turns: Permits,
    /// Clients that listen to running turns.
    pub listeners: Permits,
}

impl Limits {
    /// Counts one call of a class for a tenant.
    #[must_use]
    pub fn check(&self, tenant: &Tenant, class: Class) -> Rate {
        let (policy, quota) = class.of(tenant);
        self.local.check(tenant.id, class, policy, quota)
    }

    /// Counts `more` calls of a class besides the one that was counted.
    #[must_use]
    pub fn check_more(&self, tenant: &Tenant, class: Class, more: u32) -> Rate {
        let (policy, quota) = class.of(tenant);
        self.local.check_many(tenant.id, class, policy, quota, more)
    }

    /// Counts one turn. It is given back if the turn does not begin.
    ///
    /// # Errors
    /// `rate_limited`.
    pub fn take_turn(&self, tenant: &Tenant) -> Result<Counted> {
        let (policy, quota) = Class::Turns.of(tenant);
        self.local.take(tenant.id, Class::Turns, policy, quota)
    }

    /// Counts one text that is planned for a player. It is given back if the text is not planned.
    ///
    /// # Errors
    /// `rate_limited`.
    pub fn take_plan(&self, tenant: &Tenant, player: Uuid) -> Result<Counted> {
        self.local.take_of_player(tenant.id, player, tenant.limits.planner_per_player_per_minute)
    }

    /// Counts one failed sign-in from an address.
    #[must_use]
    pub fn check_failure(&self, peer: IpAddr) -> Rate {
        self.local.check_failure(peer)
    }

    /// Checks that the tenant may add a row of a kind.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub async fn check_rows(&self, tx: &TenantTx, caller: &Caller, table: &'static str) -> Result<()> {
        check_rows(tx, caller.tenant.limits.rows_per_kind, table).await
    }

    /// Checks that the tenant does not have too many rows of some kinds, including those that the transaction has
    /// added. Takes one statement, or none if there is no limit.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub async fn check_rows_kept(&self, tx: &TenantTx, caller: &Caller, tables: &[&'static str]) -> Result<()> {
        check_rows_kept(tx, caller.tenant.limits.rows_per_kind, tables).await
    }

    /// Checks that the tenant has model tokens left today.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub async fn check_tokens(&self, tx: &TenantTx, tenant: &Tenant) -> Result<()> {
        let tokens_max = tenant.limits.tokens_per_day;
        if tokens_max == 0 {
            return Ok(());
        }
        let row = sqlx::query(
            "SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS used, \
                    extract(epoch FROM date_trunc('day', now(), 'UTC') + interval '1 day' - now())::bigint AS rest \
             FROM usage_entry WHERE tenant_id = $1 AND created_at >= date_trunc('day', now(), 'UTC')",
        )
        .bind(tx.tenant())
        .fetch_one(&mut *tx.connection().await)
        .await?;
        if row.read::<i64>("used")?.unsigned_abs() >= tokens_max {
            let detail = format!("Today's limit of {tokens_max} model tokens is used up.");
            return Err(Error::new(Code::QuotaExceeded, detail).retry_after(row.read::<i64>("rest")?.unsigned_abs()));
        }
        Ok(())
    }
}
