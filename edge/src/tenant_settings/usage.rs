//! The usage ledger, summed up for `/v1/usage` and the editor.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::http::paging;
use base::{clock, error::Result, stored::Columns};
use db::tenancy::TenantTx;

/// The most rows of an answer.
const ROWS_MAX: usize = 10_000;

/// What usage can be grouped by.
pub struct Group {
    /// Its name in `group_by`.
    pub name: &'static str,
    /// The member of a row that shows it.
    pub member: &'static str,
    sql: &'static str,
}

/// All groups.
pub const GROUPS: [Group; 7] = [
    Group { name: "day", member: "day", sql: "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')" },
    Group { name: "campaign", member: "campaign_id", sql: "campaign_id::text" },
    Group { name: "kind", member: "kind", sql: "kind" },
    Group { name: "profile", member: "profile", sql: "profile" },
    Group { name: "model", member: "model", sql: "model" },
    Group { name: "task", member: "task", sql: "task" },
    Group { name: "player", member: "player_id", sql: "player_id::text" },
];

/// The parameters of `/usage`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UsageParams {
    /// The first day or time, inclusive. By default 30 days ago.
    pub from: Option<String>,
    /// The last day (inclusive) or time (exclusive). By default now.
    pub to: Option<String>,
    /// `day`, `campaign`, `kind`, `profile`, `model`, `task` or `player`, or several of them separated by commas. By default `day`.
    pub group_by: Option<String>,
}

/// The model calls and tokens of one group.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    pub day: Option<String>,
    pub campaign_id: Option<uuid::Uuid>,
    pub kind: Option<String>,
    /// The slug of the model profile. Null for the tenant's or the operator's own settings.
    pub profile: Option<String>,
    pub model: Option<String>,
    /// What the model was asked for: a task of `settings.models`. Null for tests of profiles.
    pub task: Option<String>,
    /// The character whose turns these were. Null for sessions' turns and tests of profiles.
    pub player_id: Option<uuid::Uuid>,
    /// Turns in which a model was asked, questions in the lab and tests of profiles.
    pub turns: i64,
    pub llm_calls: i64,
    pub prompt_tokens: i64,
    pub cached_tokens: i64,
    pub completion_tokens: i64,
    pub total_tokens: i64,
    /// What the calls with known prices cost. Null if no price is known.
    pub cost_micros: Option<i64>,
}

/// Sums up the ledger by day, campaign, kind, profile, model, task or player, as [`UsageRow`]s with the requested members. Restricted to one
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
    let mut columns: Vec<&Group> = Vec::new();
    for name in asked.group_by.as_deref().unwrap_or("day").split(',').map(str::trim) {
        let known = GROUPS.iter().find(|group| group.name == name);
        let new = known.filter(|group| columns.iter().all(|column| column.name != group.name));
        columns.push(new.ok_or_else(|| {
            let names: Vec<_> = GROUPS.iter().map(|group| format!("`{}`", group.name)).collect();
            paging::bad(
                "group_by",
                &format!("must be one or several of {}, separated by commas, each once", names.join(", ")),
            )
        })?);
    }
    let object: Vec<_> = columns.iter().map(|group| format!("'{}', {}", group.member, group.sql)).collect();
    let group: Vec<_> = columns.iter().map(|group| group.sql).collect();
    let sql = format!(
        "SELECT jsonb_build_object({}, 'turns', count(DISTINCT coalesce(turn_id, id)), 'llm_calls', sum(llm_calls)::bigint, \
           'prompt_tokens', sum(prompt_tokens)::bigint, 'cached_tokens', sum(cached_tokens)::bigint, \
           'completion_tokens', sum(completion_tokens)::bigint, \
           'total_tokens', sum(prompt_tokens + completion_tokens)::bigint, 'cost_micros', sum(cost_micros)::bigint) AS row \
         FROM usage_entry WHERE tenant_id = $1 AND created_at >= $2 AND created_at < $3 \
           AND ($4::uuid IS NULL OR campaign_id = $4) GROUP BY {1} ORDER BY {1} LIMIT {2}",
        object.join(", "),
        group.join(", "),
        ROWS_MAX + 1
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(from)
        .bind(to)
        .bind(campaign)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    if rows.len() > ROWS_MAX {
        let rule = format!("makes more than {ROWS_MAX} groups; ask for fewer groups or a shorter time");
        return Err(paging::bad("group_by", &rule));
    }
    rows.iter().map(|row| row.read("row")).collect()
}

/// The names of campaigns and characters, by id. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn names_of(tx: &TenantTx, ids: &[uuid::Uuid]) -> Result<HashMap<String, String>> {
    let rows = sqlx::query(
        "SELECT id, name FROM campaign WHERE tenant_id = $1 AND id = ANY ($2) \
         UNION ALL SELECT id, name FROM character WHERE tenant_id = $1 AND id = ANY ($2)",
    )
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
