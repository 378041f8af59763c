//! The journal as administrators read it: newest first, filtered, with the names of the people who made the changes.
//!
//! A page reads at most [`LOOKED_AT`] rows, however few of them match, and says how far it read. Programs that follow the
//! world use [`crate::journal`] instead.

use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::journal;
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::budget;

/// The most rows that a page reads.
const LOOKED_AT: i64 = 5000;

/// A filter. An entry must match all of it.
#[derive(Debug, Default)]
pub struct Filter {
    pub table: Option<String>,
    /// Only changes of one of these tables; empty for all.
    pub tables: Vec<&'static str>,
    pub origin: Option<String>,
    pub op: Option<String>,
    pub row: Option<Uuid>,
    /// The id of a user or an API key.
    pub actor: Option<Uuid>,
    pub turn: Option<Uuid>,
    /// Only changes before this number.
    pub before: Option<i64>,
}

/// One change.
pub struct AuditEntry {
    pub seq: i64,
    pub at: OffsetDateTime,
    pub table: String,
    pub row: Uuid,
    /// The row's name or title.
    pub label: String,
    pub op: String,
    pub origin: String,
    /// Whether a user of the editor made the change.
    pub is_user: bool,
    pub actor: Option<Uuid>,
    /// The user's or the key's name, if still known.
    pub actor_name: Option<String>,
    pub turn: Option<Uuid>,
    pub changes: Vec<Changed>,
}

/// A column that changed: its value before and after. `None` if the row did not exist.
pub struct Changed {
    pub column: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// A page of the audit log.
pub struct Page {
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins, if there is more.
    pub before: Option<i64>,
}

/// The newest `shown` changes of a campaign that match, newest first. Two round trips.
///
/// # Errors
/// Database errors.
pub async fn page(tx: &TenantTx, campaign: Uuid, filter: &Filter, shown: u16) -> Result<Page> {
    let (head, pruned) = journal::head(tx, campaign).await?;
    let before = filter.before.unwrap_or(head.saturating_add(1)).min(head.saturating_add(1));
    let from = before.saturating_sub(LOOKED_AT).max(pruned);
    let sql = budget::within(
        "SELECT j.*, coalesce(u.name, k.name) AS actor_name FROM journal j \
         LEFT JOIN api_key k ON k.tenant_id = $1 AND k.id = j.key_id LEFT JOIN tenant_people(NULL, NULL) AS u ON u.id = j.user_id \
         WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq < $3 AND j.seq > $4 \
           AND ($5::text IS NULL OR j.table_name = $5) AND ($6::text IS NULL OR j.origin = $6) \
           AND ($7::text IS NULL OR j.op = $7) AND ($8::uuid IS NULL OR j.row_id = $8) \
           AND ($9::uuid IS NULL OR j.user_id = $9 OR j.key_id = $9) AND ($10::uuid IS NULL OR j.turn_id = $10) \
           AND ($12::text[] = '{}' OR j.table_name = ANY ($12)) \
         ORDER BY j.seq DESC LIMIT $11",
        ["before", "after"],
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(before)
        .bind(from)
        .bind(&filter.table)
        .bind(&filter.origin)
        .bind(&filter.op)
        .bind(filter.row)
        .bind(filter.actor)
        .bind(filter.turn)
        .bind(i64::from(shown) + 1)
        .bind(&filter.tables)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let is_full = budget::is_cut(&rows) || rows.len() > usize::from(shown);
    let entries = stored::each(rows.iter().take(usize::from(shown)), entry);
    let before = match (is_full, entries.last()) {
        (true, Some(last)) => Some(last.seq),
        _ => Some(from.saturating_add(1)).filter(|_| from > pruned),
    };
    Ok(Page { entries, before })
}

fn entry(row: &PgRow) -> Result<AuditEntry> {
    let (before, after): (Option<Value>, Option<Value>) = (row.read("before")?, row.read("after")?);
    let label = |row: &Option<Value>| {
        let named = ["name", "title", "text", "content"].iter().find_map(|column| row.as_ref()?.get(column)?.as_str());
        named.map(|name| name.chars().take(80).collect::<String>())
    };
    Ok(AuditEntry {
        seq: row.read("seq")?,
        at: row.read("at")?,
        table: row.read("table_name")?,
        row: row.read("row_id")?,
        label: label(&after).or_else(|| label(&before)).unwrap_or_default(),
        op: row.read("op")?,
        origin: row.read("origin")?,
        is_user: row.read::<Option<Uuid>>("user_id")?.is_some(),
        actor: row.read::<Option<Uuid>>("user_id")?.or(row.read("key_id")?),
        actor_name: row.read("actor_name")?,
        turn: row.read("turn_id")?,
        changes: changes(before.as_ref(), after.as_ref()),
    })
}

/// The columns that differ, or all columns with a value if the row was created or deleted. Leaves out columns that change
/// every time.
fn changes(before: Option<&Value>, after: Option<&Value>) -> Vec<Changed> {
    let side =
        |row: Option<&Value>, column: &str| row.and_then(|row| row.get(column)).filter(|v| !is_empty(v)).cloned();
    let columns: std::collections::BTreeSet<&String> =
        [before, after].into_iter().flatten().filter_map(Value::as_object).flat_map(|row| row.keys()).collect();
    let shown = columns.into_iter().filter(|column| journal::is_told(column));
    shown
        .filter_map(|column| {
            let (old, new) = (side(before, column), side(after, column));
            (old != new).then(|| Changed { column: column.clone(), before: old, after: new })
        })
        .collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
