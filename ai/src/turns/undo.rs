//! Undoes a turn: all of its effects, or none.
//!
//! A turn of ordinary size is undone in one transaction, which also finds conflicts. A large turn is first checked for conflicts,
//! without writing anything. If there are none, it is marked, the client gets a 202, and the turn is undone in steps
//! (`store::revert`).

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::store::revert::{Pace, Worker, revert};
use crate::state::Ai;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{
    retry::{BRIEF, Tries},
    tenancy::{Origin, TURN_LEASE_SECONDS, TenantTx},
};
use edge::{
    caller::Caller,
    http::{
        Answer, Written,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
};
use world::edits::{self, Conflict};

/// The most effects that are undone in one transaction.
const EFFECTS_AT_ONCE: i64 = 1000;
/// The most effects that one statement checks.
const LOOKED_AT_ONCE: i32 = 1000;
/// How long the steps of an undo run here. After that the sweeper goes on.
const SHARE: Duration = Duration::from_secs(600);

/// A completed undo.
#[derive(Serialize, ToSchema)]
pub struct TurnUndone {
    turn_id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    undone_at: OffsetDateTime,
    changes_reverted: i64,
}

/// An undo of many changes, in progress. Meanwhile the turn has `reverting`; afterwards it has `undone_at`.
#[derive(Serialize, ToSchema)]
pub struct TurnUndoing {
    turn_id: Uuid,
    /// `undoing`.
    status: &'static str,
    /// How many changes will be undone.
    changes: i64,
}

/// What came of an undo.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Undo {
    Done(TurnUndone),
    InSteps(TurnUndoing),
}

/// Undoes a turn. Its messages leave the transcript together with its other effects.
///
/// # Errors
/// `undo_conflict` with each row that was changed since, `gone` if its journal was pruned, `conflict` if it was undone.
pub async fn undo(
    app: &Ai,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
) -> Result<Written<Undo>> {
    undo_with_retry(app, caller, c, turn, key, false).await
}

/// Undoes what nobody has changed since, and leaves the rest as it is now. The turn's record lists that rest.
///
/// # Errors
/// The errors of [`undo`] except `undo_conflict`.
pub async fn undo_rest(app: &Ai, caller: &Caller, c: &str, turn: Uuid) -> Result<Written<Undo>> {
    undo_with_retry(app, caller, c, turn, None, true).await
}

async fn undo_with_retry(
    app: &Ai,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
    leaves_changed: bool,
) -> Result<Written<Undo>> {
    let mut tries = Tries::with(BRIEF);
    let mut was_looked_at = leaves_changed;
    loop {
        match attempt(app, caller, c, turn, key, leaves_changed, was_looked_at).await {
            Ok(Attempted::Done(undone)) => return Ok(undone),
            // No transaction is open meanwhile.
            Ok(Attempted::Large) => {
                look(app, caller, turn).await?;
                was_looked_at = true;
            }
            Err(error) if tries.wait_to_retry(&error).await => {}
            Err(error) => return Err(error.of_delete()),
        }
    }
}

enum Attempted {
    Done(Written<Undo>),
    /// The turn has too many effects to undo it without checking first.
    Large,
}

async fn attempt(
    app: &Ai,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
    leaves_changed: bool,
    was_looked_at: bool,
) -> Result<Attempted> {
    let tx = TenantTx::write(&app.pool, &caller.actor().in_turn(turn, Origin::Revert)).await?;
    if let Some(key) = key
        && let Some(stored) = key.claim(&tx).await?
    {
        return Ok(Attempted::Done(Written::Before(stored)));
    }
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let effects = effects_of(&tx, campaign, turn).await?;
    let is_large = effects > EFFECTS_AT_ONCE;
    let answer = match is_large {
        true if !was_looked_at => return Ok(Attempted::Large),
        true => mark(&tx, turn, app.running.instance, effects).await?,
        false => at_once(&tx, turn, effects, leaves_changed).await?,
    };
    if let Some(key) = key {
        key.store(&tx, &answer).await?;
    }
    tx.commit().await?;
    if is_large {
        let (pool, actor, instance) = (app.pool.clone(), caller.actor(), app.running.instance);
        tokio::spawn(async move { Worker { pool: &pool, actor, turn, instance }.carry_on(SHARE).await });
    }
    Ok(Attempted::Done(answer.into()))
}

/// The number of effects that can be undone. Locks the turn.
///
/// # Errors
/// Why the turn cannot be undone.
async fn effects_of(tx: &TenantTx, campaign: Uuid, turn: Uuid) -> Result<i64> {
    let row = sqlx::query(
        "SELECT t.status, t.on_failure, t.chosen, t.undone_at, t.revert_as IS NOT NULL AS is_reverting, j.effects, \
                coalesce(h.pruned_at >= t.created_at OR j.first_seq <= h.pruned_seq OR j.effects = 0 AND h.pruned_seq > 0, false) AS is_pruned, \
                EXISTS (SELECT FROM journal r WHERE r.tenant_id = $1 AND r.turn_id = $3 AND r.redacted_at IS NOT NULL) AS is_redacted \
         FROM turn t LEFT JOIN feed_head h ON h.tenant_id = $1 AND h.campaign_id = $2 CROSS JOIN LATERAL ( \
             SELECT count(*) AS effects, min(j.seq) AS first_seq FROM journal j \
             WHERE j.tenant_id = $1 AND j.turn_id = $3 AND j.origin <> 'revert' AND j.seq > t.reverted_through) j \
         WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND t.id = $3 FOR NO KEY UPDATE OF t",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(turn)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    may_be_undone(&row)?;
    row.read("effects")
}

fn may_be_undone(row: &PgRow) -> Result<()> {
    match row.read::<&str>("status")? {
        "queued" | "running" => {
            return Err(Error::new(Code::TurnInProgress, "The turn is still running; cancel it instead."));
        }
        "succeeded" | "limit_reached" => {}
        // A failed turn that kept its effects can still be undone.
        _ if row.read::<&str>("on_failure")? == "keep" => {}
        _ => return Err(Error::new(Code::Conflict, "The turn failed and left nothing to undo.")),
    }
    if row.read::<Option<OffsetDateTime>>("undone_at")?.is_some() {
        return Err(Error::new(Code::Conflict, "The turn was already undone."));
    }
    if !row.read::<bool>("chosen")? {
        return Err(Error::new(
            Code::Conflict,
            "Another attempt at this answer is chosen, so this one changes nothing.",
        ));
    }
    if row.read("is_reverting")? {
        return Err(Error::new(Code::Conflict, "The turn is being undone."));
    }
    if row.read("is_redacted")? {
        return Err(Error::new(Code::Gone, "Text that this turn changed was erased, so the turn cannot be undone."));
    }
    if row.read("is_pruned")? {
        return Err(Error::new(
            Code::Gone,
            "Some of this turn's journal entries have been pruned, so the turn cannot be undone.",
        ));
    }
    Ok(())
}

/// Undoes a turn that the transaction has locked.
async fn at_once(tx: &TenantTx, turn: Uuid, effects: i64, leaves_changed: bool) -> Result<Answer<Undo>> {
    let rows = i32::try_from(EFFECTS_AT_ONCE + 1).unwrap_or(i32::MAX);
    let reverted = revert(tx, turn, Pace::whole(rows), true).await?;
    if !leaves_changed {
        let conflicts: Vec<Conflict> = reverted.conflicts.as_array().into_iter().flatten().map(Conflict::of).collect();
        edits::refuse_some(&conflicts, usize::try_from(reverted.total).unwrap_or_default(), "turn")?;
    }
    let row = sqlx::query(
        "UPDATE turn SET undone_at = now(), revert_conflicts = nullif(revert_conflicts, '[]'::jsonb), revert_next = NULL, revert_done = 0 \
         WHERE tenant_id = $1 AND id = $2 RETURNING undone_at AS at",
    )
    .bind(tx.tenant())
    .bind(turn)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let changes_reverted = effects - reverted.gone;
    Ok(Answer::ok(Undo::Done(TurnUndone { turn_id: turn, undone_at: row.read("at")?, changes_reverted })))
}

/// Checks a large turn for conflicts, in portions that lock nothing.
///
/// # Errors
/// `undo_conflict`.
async fn look(app: &Ai, caller: &Caller, turn: Uuid) -> Result<()> {
    let mut upto = i64::MAX;
    let (mut conflicts, mut total) = (Vec::new(), 0);
    loop {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let row = sqlx::query("SELECT conflicts, next_seq FROM revert_turn_look($1, $2, $3)")
            .bind(turn)
            .bind(upto)
            .bind(LOOKED_AT_ONCE)
            .fetch_one(&mut *tx.connection().await)
            .await?;
        let found: Value = row.read("conflicts")?;
        let found: Vec<Conflict> = found.as_array().into_iter().flatten().map(Conflict::of).collect();
        total += found.len();
        conflicts.extend(found.into_iter().take(edits::CONFLICTS_MAX.saturating_sub(conflicts.len())));
        match row.read("next_seq")? {
            Some(next) => upto = next,
            None => return edits::refuse_some(&conflicts, total, "turn"),
        }
    }
}

/// Stores that a turn, which the transaction has locked, is now being undone.
async fn mark(tx: &TenantTx, turn: Uuid, instance: i64, effects: i64) -> Result<Answer<Undo>> {
    sqlx::query(
        "UPDATE turn SET revert_as = 'undone', revert_since = now(), revert_total = $3, instance = $4, \
                lease_until = now() + $5 * interval '1 second' WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(i32::try_from(effects).unwrap_or(i32::MAX))
    .bind(instance)
    .bind(TURN_LEASE_SECONDS)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(Answer::accepted(Undo::InSteps(TurnUndoing { turn_id: turn, status: "undoing", changes: effects })))
}
