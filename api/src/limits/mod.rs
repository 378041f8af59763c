//! Limits per tenant: requests, tool calls, turns, turns at a time, rows, tokens a day.
//!
//! GCRA in this process ([`local`]). A store shared by replicas belongs behind [`Limits::check`], which is the one place
//! every limit passes; a tenant's numbers are the operator's (`tavernkeep tenant limits`), 0 meaning no limit.

mod local;
pub mod sign_in;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;
use utoipa::ToSchema;
use uuid::Uuid;

pub use local::{Counted, Permit, Permits};

use crate::{
    auth::Caller,
    error::{Code, Error, Result},
    stored::Columns,
    tenancy::TenantTx,
    tenants::Tenant,
};

/// A tenant's limits; 0 is unlimited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TenantLimits {
    pub requests_per_minute: u32,
    pub tools_per_minute: u32,
    pub turns_per_minute: u32,
    pub planner_per_player_per_minute: u32,
    pub concurrent_turns: u32,
    pub tokens_per_day: u64,
    pub rows_per_kind: u64,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            requests_per_minute: 6000,
            tools_per_minute: 3000,
            turns_per_minute: 600,
            planner_per_player_per_minute: 5,
            concurrent_turns: 64,
            tokens_per_day: 0,
            rows_per_kind: 0,
        }
    }
}

impl TenantLimits {
    /// No limit but the planner's.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            requests_per_minute: 0,
            tools_per_minute: 0,
            turns_per_minute: 0,
            concurrent_turns: 0,
            ..Self::default()
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    Requests,
    Tools,
    Turns,
}

impl Class {
    /// The limit's name in headers, and what a tenant has of it.
    fn of(self, tenant: &Tenant) -> (&'static str, u32) {
        match self {
            Class::Requests => ("requests", tenant.limits.requests_per_minute),
            Class::Tools => ("tools", tenant.limits.tools_per_minute),
            Class::Turns => ("turns", tenant.limits.turns_per_minute),
        }
    }
}

/// Where a caller stands after a check: what the RateLimit headers say.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub policy: &'static str,
    pub quota: u64,
    /// None: so many at a time.
    pub window_seconds: Option<u64>,
    pub remaining: u64,
    /// Seconds until the quota is whole again.
    pub reset_seconds: u64,
    /// Seconds to wait, if the limit is reached.
    pub retry_after_seconds: Option<u64>,
}

/// What an unlimited tenant's headers name as its quota: the most a structured field's integer is sure to hold.
const UNLIMITED: u64 = 999_999_999;

impl Rate {
    /// No limit.
    #[must_use]
    pub fn unlimited(policy: &'static str) -> Self {
        Self {
            policy,
            quota: UNLIMITED,
            window_seconds: Some(60),
            remaining: UNLIMITED,
            reset_seconds: 0,
            retry_after_seconds: None,
        }
    }

    /// The headers' values: policy and state (draft-ietf-httpapi-ratelimit-headers).
    #[must_use]
    pub fn headers(&self) -> (String, String) {
        let Self { policy, quota, remaining, reset_seconds, .. } = self;
        let window = match self.window_seconds {
            Some(seconds) => format!("w={seconds}"),
            None => "qu=\"concurrent-requests\"".to_owned(),
        };
        (format!("\"{policy}\";q={quota};{window}"), format!("\"{policy}\";r={remaining};t={reset_seconds}"))
    }

    /// Whether the call may go on.
    ///
    /// # Errors
    /// `rate_limited` with the seconds to wait.
    pub fn allowed(&self, what: &str) -> Result<()> {
        match self.retry_after_seconds {
            None => Ok(()),
            Some(seconds) => {
                let detail = format!("The limit of {} {what} a minute is reached.", self.quota);
                Err(Error::new(Code::RateLimited, detail).retry_after(seconds).by_limit(*self))
            }
        }
    }
}

/// Whether a tenant that may keep `rows_max` rows of a kind, any number if that is 0, may add one. One statement, or none.
///
/// # Errors
/// `quota_exceeded`.
pub async fn check_rows(tx: &TenantTx, rows_max: u64, table: &'static str) -> Result<()> {
    check_rows_more(tx, rows_max, table, 1).await
}

/// The same for `more` rows at once.
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

/// Whether it keeps no more of some kinds than it may, with those that the transaction has added. One statement, or none.
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
    Error::new(Code::QuotaExceeded, format!("This tenant may keep {rows_max} rows of {table}.")).retry_after(60)
}

/// All limits of this process.
#[derive(Default)]
pub struct Limits {
    local: local::Local,
    /// Who tries to sign in to the editor.
    pub sign_ins: sign_in::SignIns,
    pub turns: Permits,
    /// Who hears turns while they run.
    pub listeners: Permits,
}

impl Limits {
    /// Counts one call of a class for a tenant.
    #[must_use]
    pub fn check(&self, tenant: &Tenant, class: Class) -> Rate {
        let (policy, quota) = class.of(tenant);
        self.local.check(tenant.id, class, policy, quota)
    }

    /// Counts one turn, which is given back if it does not begin.
    ///
    /// # Errors
    /// `rate_limited`.
    pub fn take_turn(&self, tenant: &Tenant) -> Result<Counted> {
        let (policy, quota) = Class::Turns.of(tenant);
        self.local.take(tenant.id, Class::Turns, policy, quota)
    }

    /// Counts one text that a player has planned, which is given back if it is not.
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

    /// Whether the tenant may add a row of a kind.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub async fn check_rows(&self, tx: &TenantTx, caller: &Caller, table: &'static str) -> Result<()> {
        check_rows(tx, caller.tenant.limits.rows_per_kind, table).await
    }

    /// Whether the tenant keeps no more rows of some kinds than it may, with those that the transaction has added. One
    /// statement, none if it may keep any number.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub async fn check_rows_kept(&self, tx: &TenantTx, caller: &Caller, tables: &[&'static str]) -> Result<()> {
        check_rows_kept(tx, caller.tenant.limits.rows_per_kind, tables).await
    }

    /// Whether the tenant has model tokens left today.
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
            let detail = format!("The {tokens_max} model tokens of today are used up.");
            return Err(Error::new(Code::QuotaExceeded, detail).retry_after(row.read::<i64>("rest")?.unsigned_abs()));
        }
        Ok(())
    }
}
