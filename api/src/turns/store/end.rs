//! How a turn ends: with its answer, or with what it did taken back.

use serde_json::{Value, json};
use sqlx::types::Json;
use uuid::Uuid;

use super::{NewTurn, lost};
use crate::{
    dice::{ahead::Claim, seeds},
    edits, encounters,
    error::Result,
    http::reply::Reply as Stored,
    llm::Usage,
    messages::service::NewMessage,
    ops::metrics,
    pool::Pool,
    retry::PAID,
    stored::{self, Columns},
    tenancy::{self, Actor, Call, Origin, TenantTx},
    turns::Status,
};

/// The two messages of a turn.
pub struct Said<'a> {
    pub player_message: Uuid,
    pub player_name: &'a str,
    pub entity_name: &'a str,
    pub action: &'a str,
    pub prompt_text: &'a str,
    pub user_tokens: u32,
    pub narrative: &'a str,
    pub narrative_tokens: u32,
    pub window_start: Uuid,
}

/// How a turn ended.
pub struct Ended<'a> {
    pub status: Status,
    pub record: String,
    pub model: &'a str,
    pub usage: &'a Usage,
    pub cost_micros: Option<u64>,
    /// The answer to store under the turn's key.
    pub body: &'a [u8],
}

/// Writes how the turn ended, its usage, its answer under its key, and what was said, if anything; one round trip for the whole
/// transaction.
///
/// # Errors
/// `conflict` if the turn was cancelled or taken over meanwhile.
pub async fn finish(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    said: Option<&Said<'_>>,
) -> Result<()> {
    let row = tenancy::call(pool, actor, FINISH, |q| bind_end(q, new, ended, said)).await?;
    if row.read("done")? { Ok(()) } else { Err(lost()) }
}

/// The same for a turn that says something else than a player's question and its answer, or nothing, and takes the dice that were
/// used for it.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; those of the database.
pub async fn finish_saying(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    claim: Option<&Claim>,
) -> Result<()> {
    if messages.is_empty() && claim.is_none() {
        return finish(pool, actor, new, ended, None).await;
    }
    let bind = |q| seeds::bind_claim(bind_end(q, new, ended, None).bind(Json(messages)), claim);
    let row = tenancy::call(pool, actor, FINISH_SAYING, bind).await?;
    if row.read("done")? { Ok(()) } else { Err(lost()) }
}

/// The same in the transaction that did the turn's work.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; those of the database.
pub async fn finish_in(
    tx: TenantTx,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
) -> Result<()> {
    let q = bind_end(sqlx::query(FINISH_SAYING).bind(actor.tenant).bind(actor.signature()), new, ended, None);
    let row = seeds::bind_claim(q.bind(Json(messages)), None).fetch_one(&mut *tx.connection().await).await?;
    if row.read("done")? { tx.commit_within(PAID).await } else { Err(lost()) }
}

/// Whether a turn ended as `ended` says. Waits for whoever is about to end it. One round trip more than to begin.
///
/// # Errors
/// Those of the database.
pub async fn has_ended(pool: &Pool, actor: &Actor, new: &NewTurn<'_>, ended: &Ended<'_>) -> Result<bool> {
    let tx = TenantTx::write(pool, actor).await?;
    let row = sqlx::query(
        "SELECT instance = $3 AND status = $4 AND coalesce(record::text = $5, false) AS is_so FROM turn \
         WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE",
    )
    .bind(tx.tenant())
    .bind(new.id)
    .bind(new.instance)
    .bind(ended.status.as_str())
    .bind(&ended.record)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map_or(Ok(false), |row| row.read("is_so"))
}

macro_rules! finish {
    () => {
        "turn_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, \
         $25, $26, $27, $28, $29)"
    };
}

const FINISH: &str = concat!("SELECT ", finish!(), " AS done");
/// A `CASE` keeps the order.
const FINISH_SAYING: &str = concat!(
    "SELECT CASE WHEN ",
    finish!(),
    " THEN claim_dice($1, $31, $32, $33) AND write_messages($1, $3, $30) IS NOT NULL \
            ELSE false END AS done"
);

/// What follows tenant and signature in [`FINISH`].
fn bind_end<'q>(q: Call<'q>, new: &NewTurn<'_>, ended: &Ended<'_>, said: Option<&Said<'_>>) -> Call<'q> {
    let headers = new.key.map(|_| json!(Stored { status: 200, ..Stored::default() }));
    q.bind(new.campaign)
        .bind(new.id)
        .bind(new.kind)
        .bind(new.instance)
        .bind(ended.status.as_str())
        .bind(&ended.record)
        .bind(Uuid::now_v7())
        .bind(ended.model)
        .bind(i32::try_from(ended.usage.llm_calls).unwrap_or(i32::MAX))
        .bind(clamp(ended.usage.prompt_tokens))
        .bind(clamp(ended.usage.cached_tokens))
        .bind(clamp(ended.usage.completion_tokens))
        .bind(ended.cost_micros.map(clamp))
        .bind(headers)
        .bind(new.key.map(|_| ended.body))
        .bind(new.entity)
        .bind(new.player)
        .bind(said.map(|s| s.player_message))
        .bind(said.map(|s| s.player_name))
        .bind(said.map(|s| s.action))
        .bind(said.map(|s| s.prompt_text))
        .bind(said.map(|s| i32::try_from(s.user_tokens).unwrap_or(i32::MAX)))
        .bind(said.map(|s| s.window_start))
        .bind(Uuid::now_v7())
        .bind(said.map(|s| s.entity_name))
        .bind(said.map(|s| s.narrative))
        .bind(said.map(|s| i32::try_from(s.narrative_tokens).unwrap_or(i32::MAX)))
}

fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A turn that came to nothing.
pub struct Failure<'a> {
    pub status: Status,
    pub code: &'a str,
    pub message: &'a str,
    pub record: Option<String>,
    pub model: &'a str,
    pub usage: &'a Usage,
    pub cost_micros: Option<u64>,
}

/// Ends a turn without success: takes its effects back (unless it keeps them), records why, frees its key to be tried
/// again. What someone else changed since stays, and is reported.
///
/// # Errors
/// Those of the database; the sweeper then does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<Value> {
    let tx = TenantTx::write(pool, &actor.clone().in_turn(turn, Origin::Revert)).await?;
    let mine = sqlx::query(
        "SELECT on_failure, campaign_id, kind FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status IN ('queued', 'running') FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(instance)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(mine) = mine else { return Ok(Value::Null) };
    let conflicts = if mine.read::<&str>("on_failure")? == "keep" {
        Value::Array(Vec::new())
    } else {
        revert(&tx, turn).await?.conflicts
    };
    sqlx::query(
        "WITH freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2), \
         used AS (INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens, \
             completion_tokens, cost_micros) SELECT $1, $7, $8, $9, $10, $11, $12, $13, $14, $15 WHERE $11 > 0) \
         UPDATE turn SET status = $3, error = $4, revert_conflicts = $5, record = $6::text::json, finished_at = now() \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(failure.status.as_str())
    .bind(json!({ "code": failure.code, "message": failure.message }))
    .bind(&conflicts)
    .bind(&failure.record)
    .bind(Uuid::now_v7())
    .bind(mine.read::<Uuid>("campaign_id")?)
    .bind(mine.read::<String>("kind")?)
    .bind(failure.model)
    .bind(i32::try_from(failure.usage.llm_calls).unwrap_or(i32::MAX))
    .bind(clamp(failure.usage.prompt_tokens))
    .bind(clamp(failure.usage.cached_tokens))
    .bind(clamp(failure.usage.completion_tokens))
    .bind(failure.cost_micros.map(clamp))
    .execute(&mut *tx.connection().await)
    .await?;
    tx.commit().await?;
    Ok(conflicts)
}

/// What came of taking a turn back.
pub struct Reverted {
    /// What stood in the way, as a list.
    pub conflicts: Value,
    /// New rows that somebody else had taken away already.
    pub gone: i64,
}

/// Takes back what a turn changed, except for what something stands in the way of.
///
/// # Errors
/// Those of the database.
pub async fn revert(tx: &TenantTx, turn: Uuid) -> Result<Reverted> {
    let fights = encounters::rewind::rewind(tx, turn).await?;
    let rows = sqlx::query("SELECT * FROM revert_turn($1)").bind(turn).fetch_all(&mut *tx.connection().await).await?;
    let (gone, stopped): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.read::<&str>("reason").is_ok_and(|reason| reason == edits::GONE));
    let conflicts = stored::each(stopped, |row| {
        Ok(json!({
            "table": row.read::<String>("table_name")?, "id": row.read::<Uuid>("row_id")?,
            "column": row.read::<Option<String>>("column_name")?, "reason": row.read::<String>("reason")?,
        }))
    });
    let conflicts = Value::Array(fights.into_iter().chain(conflicts).collect());
    Ok(Reverted { conflicts, gone: i64::try_from(gone.len()).unwrap_or(i64::MAX) })
}

/// Reverts and fails turns whose server is gone; returns how many.
///
/// # Errors
/// Those of the database.
pub async fn sweep(pool: &Pool) -> Result<usize> {
    let orphans = sqlx::query("SELECT * FROM orphaned_turns(100)").fetch_all(&mut *pool.acquire().await?).await?;
    for row in &orphans {
        let (tenant, turn): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("turn_id")?);
        let tx = TenantTx::write(pool, &Actor::system(tenant).in_turn(turn, Origin::Revert)).await?;
        let held = sqlx::query(
            "SELECT on_failure FROM turn WHERE tenant_id = $1 AND id = $2 AND status IN ('queued', 'running') \
             AND EXISTS (SELECT 1 FROM orphaned_turns(100) o WHERE o.turn_id = turn.id) FOR UPDATE SKIP LOCKED",
        )
        .bind(tenant)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        let Some(held) = held else { continue };
        let keep = held.read::<&str>("on_failure")? == "keep";
        let conflicts = if keep { Value::Array(Vec::new()) } else { revert(&tx, turn).await?.conflicts };
        sqlx::query(
            "WITH freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2) \
             UPDATE turn SET status = 'failed', error = $3, revert_conflicts = $4, finished_at = now() \
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant)
        .bind(turn)
        .bind(json!({ "code": "internal", "message": "The server that ran this turn stopped." }))
        .bind(&conflicts)
        .execute(&mut *tx.connection().await)
        .await?;
        tx.commit().await?;
        metrics::TURNS_SWEPT.inc();
        tracing::warn!(turn_id = %turn, "reverted a turn whose server stopped");
    }
    Ok(orphans.len())
}
