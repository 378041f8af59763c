//! The journal as clients read it: every change of a campaign's world in the order of commits.
//!
//! Rows are written by triggers (see `migration/src/sql/functions.sql`), never from here.

use serde::Serialize;
use sqlx::Row;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    error::{Code, Error, Result},
    http::{
        Reply,
        resource::{Ref, campaign_id},
    },
    tenancy::TenantTx,
};

/// One change of one row.
#[derive(Debug, Serialize, ToSchema)]
pub struct Change {
    /// The position in this campaign's feed: dense, rising, in the order of commits.
    pub seq: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    pub schema_version: i32,
    pub table: String,
    pub id: Uuid,
    /// `insert`, `update` or `delete`.
    pub op: String,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
    /// `api`, `turn`, `import`, `revert` or `system`.
    pub origin: String,
    /// The API key that did it.
    pub actor: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    pub request_id: Option<String>,
}

/// A page of the journal.
#[derive(Debug, Serialize, ToSchema)]
pub struct Changes {
    pub items: Vec<Change>,
    /// Pass as `after` for the next page.
    pub next_after: i64,
    pub has_more: bool,
}

/// Columns of our own bookkeeping that are nobody's business outside.
const HIDDEN: [&str; 6] = ["tenant_id", "search", "associated_key", "prompt_text", "window_start", "influence_at"];

/// The changes after `after`.
///
/// # Errors
/// `gone` if some of them have been pruned, `not_found` for the campaign.
pub async fn changes(app: &App, caller: &Caller, c: &str, after: i64, limit: i64) -> Result<Reply> {
    if !(1..=200).contains(&limit) || after < 0 {
        return Err(Error::new(Code::BadRequest, "`limit` is 1 to 200 and `after` is not negative."));
    }
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let rows = sqlx::query(
        "SELECT * FROM journal WHERE tenant_id = $1 AND campaign_id = $2 AND seq > $3 ORDER BY seq LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(after)
    .bind(limit + 1)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    // Read after the rows: what was pruned while they were read shows here.
    let head = sqlx::query("SELECT pruned_seq FROM feed_head WHERE tenant_id = $1 AND campaign_id = $2")
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let pruned: i64 = head.map_or(0, |row| row.get("pruned_seq"));
    if after < pruned {
        return Err(Error::new(
            Code::Gone,
            format!("The journal begins after {pruned}; read the present state first."),
        ));
    }
    let limit = usize::try_from(limit).unwrap_or(200);
    let items: Vec<Change> = rows.iter().take(limit).map(change).collect();
    let next_after = items.last().map_or(after, |c| c.seq);
    Reply::ok(&Changes { next_after, has_more: rows.len() > limit, items })
}

fn change(row: &sqlx::postgres::PgRow) -> Change {
    let shown = |name: &str| {
        let mut value: Option<serde_json::Value> = row.get(name);
        if let Some(serde_json::Value::Object(members)) = &mut value {
            members.retain(|key, _| !HIDDEN.contains(&key.as_str()));
        }
        value
    };
    Change {
        seq: row.get("seq"),
        at: row.get("at"),
        schema_version: row.get("schema_version"),
        table: row.get("table_name"),
        id: row.get("row_id"),
        op: row.get("op"),
        before: shown("before"),
        after: shown("after"),
        origin: row.get("origin"),
        actor: row.get("key_id"),
        turn_id: row.get("turn_id"),
        request_id: row.get("request_id"),
    }
}
