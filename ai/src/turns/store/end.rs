//! Ends a turn: with its answer, or by reverting its effects (the steps for that are in `revert`).

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    NewTurn, lost,
    revert::{Pace, Worker, revert},
    used::{Used, UsedBy, used},
};
use crate::turns::{
    kind::TurnKind,
    view::{LlmCall, Status},
};
use base::{error::Result, stored::Columns};
use db::{
    pool::Pool,
    retry::PAID,
    tenancy::{self, Actor, Call, Origin, TURN_LEASE_SECONDS, TenantTx},
};
use edge::http::StoredAnswer;
use world::{dice::ahead::Claim, messages::service::NewMessage};

/// How long the client of a failed turn waits for the revert.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a turn ended.
pub struct Ended<'a> {
    pub status: Status,
    pub record: String,
    pub calls: &'a [LlmCall],
    /// The answer to store under the turn's key.
    pub answer: &'a StoredAnswer,
    /// What the turn says to its player, if it is a reaction.
    pub reply: Option<&'a NewReply<'a>>,
    /// The player's message that the turn has taken and answers, as the model read it.
    pub question: Option<&'a NewMessage>,
}

/// The reply of a reaction, as `turn_end` stores it.
#[derive(Serialize)]
pub struct NewReply<'a> {
    pub id: Uuid,
    pub reaction_id: Uuid,
    pub player_id: Uuid,
    pub entity_kind: &'static str,
    pub entity_id: Uuid,
    pub narrative: &'a str,
    /// Written when the reply is delivered.
    pub messages: Vec<NewMessage>,
    pub location_key: Option<&'a str>,
    pub reverts: bool,
    pub expires_seconds: u32,
}

/// A turn's end as `turn_end` in the database stores it.
#[derive(Serialize)]
struct EndedRow<'a> {
    id: Uuid,
    campaign_id: Uuid,
    kind: TurnKind,
    instance: i64,
    status: &'static str,
    answer_headers: Option<&'a StoredAnswer>,
    usage: Vec<Used<'a>>,
    messages: &'a [NewMessage],
    dice: Option<DiceRow>,
    reply: Option<&'a NewReply<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionRow<'a>>,
}

/// How the model read a message that the player had said already.
#[derive(Serialize)]
struct QuestionRow<'a> {
    id: Uuid,
    prompt_text: Option<&'a str>,
    tokens: u32,
}

/// The counters of a fair stream that the turn used.
#[derive(Serialize)]
struct DiceRow {
    seed: Uuid,
    before: i64,
    after: i64,
}

/// Stores how the turn ended: its usage, its answer under its key, and its messages. Also claims the dice that it used. One round
/// trip for the whole transaction.
///
/// # Errors
/// `conflict` if the turn was cancelled or taken over meanwhile; database errors.
pub async fn finish(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    claim: Option<&Claim>,
) -> Result<()> {
    let row = tenancy::call(pool, actor, FINISH, |q| bind_end(q, new, ended, messages, claim)).await?;
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
    let q = sqlx::query(FINISH).bind(actor.tenant).bind(actor.signature());
    let row = bind_end(q, new, ended, messages, None).fetch_one(&mut *tx.connection().await).await?;
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

const FINISH: &str = "SELECT turn_end($1, $2, $3, $4, $5) AS done";

/// Binds the arguments after tenant and signature in [`FINISH`].
fn bind_end<'q>(
    q: Call<'q>,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    claim: Option<&Claim>,
) -> Call<'q> {
    let row = EndedRow {
        id: new.id,
        campaign_id: new.subject.campaign,
        kind: new.subject.kind,
        instance: new.instance,
        status: ended.status.as_str(),
        answer_headers: new.key.map(|_| ended.answer),
        usage: used(ended.calls),
        messages,
        dice: claim.map(|claim| DiceRow { seed: claim.seed, before: claim.before, after: claim.after }),
        reply: ended.reply,
        question: ended.question.map(|question| QuestionRow {
            id: question.id,
            prompt_text: question.prompt_text.as_deref(),
            tokens: question.tokens,
        }),
    };
    q.bind(Json(row)).bind(&ended.record).bind(new.key.map(|_| ended.answer.body()))
}

/// A turn that failed or was cancelled.
pub struct Failure<'a> {
    pub status: Status,
    pub code: &'a str,
    pub message: &'a str,
    pub record: Option<String>,
    pub calls: &'a [LlmCall],
}

/// Ends a turn without success: reverts its effects (unless it keeps them), stores the reason, and frees its key: for the same turn if it
/// failed, for another one if it was cancelled. Rows that somebody else has changed since are conflicts and stay. Many effects are
/// reverted in steps, as long as the client may wait; after that the sweeper goes on. Returns false if the turn is no longer this server's.
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
        "SELECT on_failure, campaign_id, kind, player_id FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status IN ('queued', 'running') AND revert_as IS NULL FOR NO KEY UPDATE",
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
    let by = UsedBy {
        campaign: mine.read("campaign_id")?,
        kind: mine.read("kind")?,
        turn: Some(turn),
        player: mine.read("player_id")?,
    };
    by.count(&tx, &used(failure.calls)).await?;
    sqlx::query(
        "WITH ended AS (DELETE FROM idempotency WHERE tenant_id = $1 AND turn_id = $2 AND $6 AND $3 = 'cancelled'), \
              freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2 AND $6 AND $3 <> 'cancelled') \
         UPDATE turn SET status = CASE WHEN $6 THEN $3 ELSE status END, finished_at = CASE WHEN $6 THEN now() END, error = $4, \
                record = $5::text::json, revert_conflicts = coalesce(revert_conflicts, '[]'), revert_done = CASE WHEN $6 THEN 0 ELSE revert_done END, \
                revert_next = CASE WHEN NOT $6 THEN revert_next END, revert_as = CASE WHEN NOT $6 THEN $3 END, \
                revert_since = CASE WHEN NOT $6 THEN now() END, lease_until = now() + $7 * interval '1 second', \
                revert_total = CASE WHEN NOT $6 THEN (SELECT count(*) FROM journal j WHERE j.tenant_id = $1 AND j.turn_id = $2 \
                    AND j.origin <> 'revert' AND j.seq > reverted_through) END \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(failure.status.as_str())
    .bind(json!({ "code": failure.code, "message": failure.message }))
    .bind(&failure.record)
    .bind(is_done)
    .bind(TURN_LEASE_SECONDS)
    .execute(&mut *tx.connection().await)
    .await?;
    tx.commit().await?;
    Ok(Some(is_done))
}
