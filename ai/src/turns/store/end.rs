//! Ends a turn: with its answer, or by reverting its effects (the steps for that are in `revert`).

use std::time::Duration;

use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    LEASE_SECONDS, NewTurn, lost,
    revert::{Pace, Worker, revert},
};
use crate::turns::Status;
use base::{error::Result, stored::Columns};
use db::{
    pool::Pool,
    retry::PAID,
    tenancy::{self, Actor, Call, Origin, TenantTx},
};
use edge::http::reply::Reply as Stored;
use llm::Usage;
use world::{
    dice::{ahead::Claim, seeds},
    messages::service::NewMessage,
};

/// How long the client of a failed turn waits for the revert.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// Stores how the turn ended, its usage, its answer under its key, and its messages, if any. One round trip for the whole
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

/// The same for a turn with other messages than a player's text and its answer, or with none. Also claims the dice that it used.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; database errors.
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
/// `conflict` if the turn is no longer this server's; database errors.
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

/// Whether a turn ended as `ended` says. Waits for a transaction that is about to end it. Takes one round trip more than beginning
/// one.
///
/// # Errors
/// Database errors.
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
/// `CASE` guarantees the order.
const FINISH_SAYING: &str = concat!(
    "SELECT CASE WHEN ",
    finish!(),
    " THEN claim_dice($1, $31, $32, $33) AND write_messages($1, $3, $30) IS NOT NULL \
            ELSE false END AS done"
);

/// Binds the arguments after tenant and signature in [`FINISH`].
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

/// A turn that failed or was cancelled.
pub struct Failure<'a> {
    pub status: Status,
    pub code: &'a str,
    pub message: &'a str,
    pub record: Option<String>,
    pub model: &'a str,
    pub usage: &'a Usage,
    pub cost_micros: Option<u64>,
}

/// Ends a turn without success: reverts its effects (unless it keeps them), stores the reason, and frees its key for another
/// attempt. Rows that somebody else has changed since are conflicts and stay. Many effects are reverted in steps, as long as the
/// client may wait; after that the sweeper goes on. Returns false if the turn is no longer this server's.
///
/// # Errors
/// Database errors. Then the sweeper does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<bool> {
    let is_done = match fail_at_once(pool, actor, turn, instance, failure, true).await {
        Ok(None) => return Ok(false),
        Ok(Some(is_done)) => is_done,
        // The reason is stored even if the revert fails.
        Err(error) => {
            tracing::warn!(turn_id = %turn, %error, "a failed turn will be reverted later");
            if fail_at_once(pool, actor, turn, instance, failure, false).await?.is_none() {
                return Ok(false);
            }
            false
        }
    };
    if !is_done {
        Worker { pool, actor: actor.clone(), turn, instance }.carry_on(PATIENCE).await;
    }
    Ok(true)
}

/// Stores how a turn of this server failed, and reverts as much as one step can. Returns whether that was everything; None if the
/// turn is not this server's.
async fn fail_at_once(
    pool: &Pool,
    actor: &Actor,
    turn: Uuid,
    instance: i64,
    failure: &Failure<'_>,
    reverts: bool,
) -> Result<Option<bool>> {
    let tx = TenantTx::write(pool, &actor.clone().in_turn(turn, Origin::Revert)).await?;
    let mine = sqlx::query(
        "SELECT on_failure, campaign_id, kind FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status IN ('queued', 'running') AND revert_as IS NULL FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(instance)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(mine) = mine else { return Ok(None) };
    let is_done = if mine.read::<&str>("on_failure")? == "keep" {
        true
    } else {
        reverts && revert(&tx, turn, Pace::FIRST, true).await?.is_done
    };
    sqlx::query(
        "WITH freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2 AND $15), \
         used AS (INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens, \
             completion_tokens, cost_micros) SELECT $1, $6, $7, $8, $9, $10, $11, $12, $13, $14 WHERE $10 > 0) \
         UPDATE turn SET status = CASE WHEN $15 THEN $3 ELSE status END, finished_at = CASE WHEN $15 THEN now() END, error = $4, \
                record = $5::text::json, revert_conflicts = coalesce(revert_conflicts, '[]'), revert_done = CASE WHEN $15 THEN 0 ELSE revert_done END, \
                revert_next = CASE WHEN NOT $15 THEN revert_next END, revert_as = CASE WHEN NOT $15 THEN $3 END, \
                revert_since = CASE WHEN NOT $15 THEN now() END, lease_until = now() + $16 * interval '1 second', \
                revert_total = CASE WHEN NOT $15 THEN (SELECT count(*) FROM journal j WHERE j.tenant_id = $1 AND j.turn_id = $2 \
                    AND j.origin <> 'revert' AND j.seq > reverted_through) END \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(failure.status.as_str())
    .bind(json!({ "code": failure.code, "message": failure.message }))
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
    .bind(is_done)
    .bind(LEASE_SECONDS)
    .execute(&mut *tx.connection().await)
    .await?;
    tx.commit().await?;
    Ok(Some(is_done))
}
