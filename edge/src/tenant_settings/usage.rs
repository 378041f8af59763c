//! The usage ledger, summed up for `/v1/usage` and the editor.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::http::paging;
use base::{clock, error::Result, stored::Columns};
use db::tenancy::TenantTx;

/// The parameters of `/usage`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UsageParams {
    /// The first day or time, inclusive. By default 30 days ago.
    pub from: Option<String>,
    /// The last day (inclusive) or time (exclusive). By default now.
    pub to: Option<String>,
    /// `day`, `campaign`, `kind` or `model`, or several of them separated by commas. By default `day`.
    pub group_by: Option<String>,
}

/// The model calls and tokens of one group.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    pub day: Option<String>,
    pub campaign_id: Option<uuid::Uuid>,
    pub kind: Option<String>,
    pub model: Option<String>,
    pub turns: i64,
    pub llm_calls: i64,
    pub prompt_tokens: i64,
    pub cached_tokens: i64,
    pub completion_tokens: i64,
    pub total_tokens: i64,
    /// Null until the tenant sets `llm.prices`.
    pub cost_micros: Option<i64>,
}

/// Sums up the ledger by day, campaign, kind or model, as [`UsageRow`]s with the requested members. Restricted to one
/// campaign if one is given.
///
/// # Errors
/// `bad_request` for an invalid day or group.
pub async fn summed(tx: &TenantTx, asked: &UsageParams, campaign: Option<uuid::Uuid>) -> Result<Vec<Value>> {
    let from = instant("from", asked.from.as_deref(), false)?
        .unwrap_or_else(|| clock::later(clock::now(), Duration::days(-30)));
    let to = instant("to", asked.to.as_deref(), true)?.unwrap_or_else(clock::now);
    if let (Some(from), Some(to)) = (&asked.from, &asked.to)
        && instant("from", Some(from), false)? >= instant("to", Some(to), true)?
    {
        return Err(paging::bad("from", "must be before `to`"));
    }
    let mut columns = Vec::new();
    for group in asked.group_by.as_deref().unwrap_or("day").split(',') {
        columns.push(match group.trim() {
            "day" => ("day", "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"),
            "campaign" => ("campaign_id", "campaign_id::text"),
            "kind" => ("kind", "kind"),
            "model" => ("model", "model"),
            _ => {
                return Err(paging::bad(
                    "group_by",
                    "must be `day`, `campaign`, `kind` or `model`, or several of them separated by commas",
                ));
            }
        });
    }
    let object: Vec<_> = columns.iter().map(|(name, sql)| format!("'{name}', {sql}")).collect();
    let group: Vec<_> = columns.iter().map(|(_, sql)| *sql).collect();
    let sql = format!(
        "SELECT jsonb_build_object({}, 'turns', count(*), 'llm_calls', sum(llm_calls)::bigint, \
           'prompt_tokens', sum(prompt_tokens)::bigint, 'cached_tokens', sum(cached_tokens)::bigint, \
           'completion_tokens', sum(completion_tokens)::bigint, \
           'total_tokens', sum(prompt_tokens + completion_tokens)::bigint, 'cost_micros', sum(cost_micros)::bigint) AS row \
         FROM usage_entry WHERE tenant_id = $1 AND created_at >= $2 AND created_at < $3 \
           AND ($4::uuid IS NULL OR campaign_id = $4) GROUP BY {1} ORDER BY {1} LIMIT 10000",
        object.join(", "),
        group.join(", ")
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(from)
        .bind(to)
        .bind(campaign)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| row.read("row")).collect()
}

/// The names of campaigns, by id. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn campaign_names(tx: &TenantTx, ids: &[uuid::Uuid]) -> Result<HashMap<String, String>> {
    let rows = sqlx::query("SELECT id, name FROM campaign WHERE tenant_id = $1 AND id = ANY ($2)")
        .bind(tx.tenant())
        .bind(ids)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| Ok((row.read::<uuid::Uuid>("id")?.to_string(), row.read("name")?))).collect()
}

/// Parses the time of a parameter. A day means its beginning or, with `end_of_day`, its end.
fn instant(name: &str, text: Option<&str>, end_of_day: bool) -> Result<Option<OffsetDateTime>> {
    let Some(text) = text else { return Ok(None) };
    if let Some(time) = clock::parse(text) {
        return Ok(Some(time));
    }
    let rule = "must be a day (2026-01-31) or an RFC 3339 time, up to the year 9999";
    let midnight = clock::parse_day(text).ok_or_else(|| paging::bad(name, rule))?;
    Ok(Some(if end_of_day { clock::later(midnight, Duration::days(1)) } else { midnight }))
}
