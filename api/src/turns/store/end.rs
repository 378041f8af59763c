//! How a turn ends: with its answer, or with what it did taken back (the steps of that are in `revert`).

use std::time::Duration;

use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    LEASE_SECONDS, NewTurn, lost,
    revert::{Pace, Worker, revert},
};
use crate::{
    dice::{ahead::settled, seeds},
    error::Result,
    http::reply::Reply as Stored,
    llm::Usage,
    messages::service::NewMessage,
    pool::Pool,
    stored::Columns,
    tenancy::{self, Actor, Call, Origin, TenantTx},
    tools::Rest,
    turns::Status,
};

/// How long whoever asked for a turn that failed waits for it to be taken back.
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

/// The same for a turn that says something else than a player's question and its answer, or nothing; with what is left of the
/// work that was done for it.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; those of the database.
pub async fn finish_saying(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    Rest { begun, claim }: Rest,
) -> Result<()> {
    if messages.is_empty() && begun.is_none() && claim.is_none() {
        return finish(pool, actor, new, ended, None).await;
    }
    let bind = |q| seeds::bind_claim(bind_end(q, new, ended, None).bind(Json(messages)), claim.as_ref());
    let Some(tx) = begun else {
        let row = tenancy::call(pool, actor, FINISH_SAYING, bind).await;
        let done = row.and_then(|row| if row.read("done")? { Ok(()) } else { Err(lost()) });
        return settled(claim, done);
    };
    let q = bind(sqlx::query(FINISH_SAYING).bind(actor.tenant).bind(actor.signature()));
    let row = q.fetch_one(&mut *tx.connection().await).await?;
    if row.read("done")? { tx.commit().await } else { Err(lost()) }
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
/// again. What someone else changed since stays, and is reported. Many effects are taken back in steps, for as long as whoever asked for the turn
/// may wait; the sweeper goes on then. False if the turn is no longer this server's.
///
/// # Errors
/// Those of the database; the sweeper then does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<bool> {
    let is_done = match fail_at_once(pool, actor, turn, instance, failure, true).await {
        Ok(None) => return Ok(false),
        Ok(Some(is_done)) => is_done,
        // Why it failed is kept, whatever keeps it from being taken back.
        Err(error) => {
            tracing::warn!(turn_id = %turn, %error, "a failed turn is taken back later");
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

/// Says how a turn of this server's failed, and takes back what one step takes back. Whether that was all; none if it is not this
/// server's.
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
