//! Continues an erasure: one batch of a table per transaction, until a pass through all tables finds nothing.
//!
//! Whoever has locked the erasure's row does a step. A step may be lost at any moment; the next one continues after the
//! last commit. Nothing is searched while a turn runs that began before the erasure: the turn may know what is to be
//! erased, and could write it into a table that was already searched.

use std::time::Duration;

use serde_json::{Map, Value};
use sqlx::{AssertSqlSafe, types::Json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Kind, places, words};
use base::{error::Result, metrics, stored::Columns};
use db::{
    pool::Pool,
    tenancy::{Actor, TenantTx},
};
use edge::http::resource::fold_columns;

/// The number of rows that one transaction looks at.
const ROWS_MAX: i32 = 200;
/// The largest number of rows that may be deleted with the character in the last transaction.
const LAST_ROWS_MAX: i32 = 500;
/// The number of stored sentences that are deleted at a time.
const WORDS_MAX: i64 = 5000;
/// The longest time for one step, in seconds. A step that takes longer has gone wrong.
const SECONDS_MAX: u32 = 60;
/// The largest number of passes. Without a limit there might be no end: others may write the words again and again.
const PASSES_MAX: i32 = 4;
/// How often we check whether turns have ended.
const AWAIT_POLL: Duration = Duration::from_millis(50);

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    Went,
    /// Some turns have to end first.
    Waits,
    /// The erasure is finished, or another server is working on it.
    Over,
}

/// Does one step.
///
/// # Errors
/// Those of the database. The step is repeated later.
pub async fn step(pool: &Pool, tenant: Uuid, erasure: Uuid) -> Result<Step> {
    let tx = TenantTx::write_much(pool, &Actor::system(tenant), SECONDS_MAX).await?;
    let held =
        sqlx::query("SELECT * FROM erase_hold($1)").bind(erasure).fetch_optional(&mut *tx.connection().await).await?;
    let Some(held) = held else { return Ok(Step::Over) };
    if held.read::<bool>("is_awaited")? {
        tx.commit().await?;
        return Ok(Step::Waits);
    }
    let kind = if held.read::<&str>("kind")? == Kind::User.as_str() { Kind::User } else { Kind::Character };
    let state = State { pass: held.read("pass")?, changed: held.read("changed_in_pass")? };
    let step = walk(&tx, erasure, kind, (held.read("place")?, held.read("seen")?), &state).await?;
    tx.commit().await?;
    Ok(step)
}

/// The state of the current pass.
struct State {
    pass: i32,
    changed: i64,
}

/// Searches on from a position, through several small tables at once, until enough rows were looked at.
async fn walk(
    tx: &TenantTx,
    erasure: Uuid,
    kind: Kind,
    (mut at, mut seen): (i32, Option<Vec<String>>),
    state: &State,
) -> Result<Step> {
    let kept = words_to_keep(tx, erasure).await?;
    let mut looked = 0;
    while looked < ROWS_MAX {
        let Some((table, walk)) = places::walked().nth(usize::try_from(at).unwrap_or(usize::MAX)) else {
            if looked > 0 {
                break;
            }
            return end_of_walk(tx, erasure, state.pass, state.changed).await;
        };
        let place = places::describe_table(table, walk, kind, &kept);
        let portion = portion(tx, erasure, &place, seen.as_deref()).await?;
        if portion.changed > 0 {
            fold_again(tx, erasure, table, seen.as_deref(), portion.last.as_deref()).await?;
        }
        looked += portion.looked + 1;
        seen = portion.last;
        at += i32::from(seen.is_none());
        keep_place(tx, erasure, at, seen.as_deref(), portion.changed).await?;
    }
    Ok(Step::Went)
}

/// The words that documents may contain as values of their own and that must be kept there.
async fn words_to_keep(tx: &TenantTx, erasure: Uuid) -> Result<Vec<String>> {
    let row = sqlx::query("SELECT words FROM erasure WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(erasure)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    Ok(words::terms(&row.read::<Vec<String>>("words")?))
}

/// The result of one batch.
struct Portion {
    /// The key of the batch's last row; none at the end of the table.
    last: Option<Vec<String>>,
    looked: i32,
    changed: i32,
}

async fn portion(tx: &TenantTx, erasure: Uuid, place: &Value, seen: Option<&[String]>) -> Result<Portion> {
    let row = sqlx::query("SELECT * FROM erase_batch($1, $2, $3, $4)")
        .bind(erasure)
        .bind(Json(place))
        .bind(seen)
        .bind(ROWS_MAX)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    Ok(Portion { last: row.read("last")?, looked: row.read("looked")?, changed: row.read("changed")? })
}

/// Writes the folded forms again of texts in which words were replaced, for a batch of a table that has such forms. Two statements, or
/// one if there are none.
async fn fold_again(
    tx: &TenantTx,
    erasure: Uuid,
    table: &places::Table,
    after: Option<&[String]>,
    through: Option<&[String]>,
) -> Result<()> {
    let searched: Vec<&str> = table.columns.iter().filter_map(|(name, _)| name.strip_prefix("folded_")).collect();
    if searched.is_empty() {
        return Ok(());
    }
    let table = table.name;
    let of_each = |sql: fn(&str) -> String, between: &str| {
        searched.iter().map(|name| sql(name)).collect::<Vec<_>>().join(between)
    };
    let sql = format!(
        "SELECT jsonb_build_object('id', t.id, {}) AS columns FROM {table} t JOIN erasure e ON e.tenant_id = $1 AND e.id = $4 \
         WHERE t.tenant_id = $1 AND (e.campaign_ids IS NULL OR t.campaign_id = ANY (e.campaign_ids)) \
           AND ($2::uuid IS NULL OR t.id > $2) AND ($3::uuid IS NULL OR t.id <= $3) AND ({}) ORDER BY t.id LIMIT {ROWS_MAX}",
        of_each(|name| format!("'{name}', t.{name}"), ", "),
        of_each(
            |name| format!("t.folded_{name} IS NULL AND octet_length(t.{name}::text) <> length(t.{name}::text)"),
            " OR "
        ),
    );
    let id = |key: Option<&[String]>| key.and_then(|key| Uuid::try_parse(key.first()?).ok());
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(id(after))
        .bind(id(through))
        .bind(erasure)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let mut folded = Vec::with_capacity(rows.len());
    for row in rows {
        let Json(mut columns) = row.read::<Json<Map<String, Value>>>("columns")?;
        fold_columns(&mut columns, &searched);
        folded.push(columns);
    }
    if folded.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "UPDATE {table} t SET {} FROM jsonb_populate_recordset(NULL::{table}, $1) r WHERE t.tenant_id = $2 AND t.id = r.id",
        of_each(|name| format!("folded_{name} = r.folded_{name}"), ", "),
    );
    sqlx::query(AssertSqlSafe(sql)).bind(Json(folded)).bind(tx.tenant()).execute(&mut *tx.connection().await).await?;
    Ok(())
}

async fn keep_place(tx: &TenantTx, erasure: Uuid, at: i32, seen: Option<&[String]>, changed: i32) -> Result<()> {
    sqlx::query(
        "UPDATE erasure SET place = $3, seen = $4, changed_in_pass = changed_in_pass + $5, rows = rows + $5 WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(erasure)
    .bind(at)
    .bind(seen)
    .bind(i64::from(changed))
    .execute(&mut *tx.connection().await)
    .await?;
    metrics::ERASED_ROWS.inc_by(u64::try_from(changed).unwrap_or_default());
    Ok(())
}

/// After the first pass, deletes the character's own row. After a pass that found nothing, the erasure is finished.
async fn end_of_walk(tx: &TenantTx, erasure: Uuid, pass: i32, changed: i64) -> Result<Step> {
    if pass == 1 {
        let row = sqlx::query("SELECT erase_last($1, $2) AS is_gone")
            .bind(erasure)
            .bind(LAST_ROWS_MAX)
            .fetch_one(&mut *tx.connection().await)
            .await?;
        return walk_again(tx, erasure, if row.read("is_gone")? { 2 } else { 1 }).await;
    }
    if changed > 0 && pass < PASSES_MAX {
        return walk_again(tx, erasure, pass + 1).await;
    }
    let forgotten = sqlx::query(
        "DELETE FROM erasure_word WHERE tenant_id = $1 AND erasure_id = $2 AND hash IN \
             (SELECT hash FROM erasure_word WHERE tenant_id = $1 AND erasure_id = $2 LIMIT $3)",
    )
    .bind(tx.tenant())
    .bind(erasure)
    .bind(WORDS_MAX)
    .execute(&mut *tx.connection().await)
    .await?;
    if forgotten.rows_affected() > 0 {
        return Ok(Step::Went);
    }
    sqlx::query(
        "UPDATE erasure SET words = '{}', seen = NULL, done_at = clock_timestamp(), moved_at = clock_timestamp() \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(erasure)
    .execute(&mut *tx.connection().await)
    .await?;
    metrics::ERASURES.inc();
    Ok(Step::Over)
}

async fn walk_again(tx: &TenantTx, erasure: Uuid, pass: i32) -> Result<Step> {
    sqlx::query(
        "UPDATE erasure SET place = 0, seen = NULL, pass = $3, changed_in_pass = 0 WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(erasure)
    .bind(pass)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(Step::Went)
}

/// Continues an erasure for a while.
///
/// # Errors
/// Those of the database.
pub async fn carry_on(pool: &Pool, tenant: Uuid, erasure: Uuid, share: Duration) -> Result<Step> {
    let until = Instant::now() + share;
    loop {
        let step = match step(pool, tenant, erasure).await {
            Err(error) if error.is_transient() => Step::Waits,
            step => step?,
        };
        if step == Step::Over || Instant::now() >= until {
            return Ok(step);
        }
        if step == Step::Waits {
            sleep(AWAIT_POLL).await;
        }
    }
}
