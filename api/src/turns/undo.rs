//! Taking a turn back: every effect, or none.

use serde_json::json;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::store;
use crate::{
    app::App,
    auth::Caller,
    edits::{self, Conflict},
    error::{Code, Error, Result},
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
    retry::{self, BRIEF},
    stored::Columns,
    tenancy::{Origin, TenantTx},
};

/// Undoes a turn. Its messages leave the transcript with its other effects.
///
/// # Errors
/// `undo_conflict` naming each row that was changed since, `gone` if its journal was pruned, `conflict` if it was undone.
pub async fn undo(app: &App, caller: &Caller, c: &str, turn: Uuid, key: Option<&IdempotencyKey>) -> Result<Reply> {
    again(app, caller, c, turn, key, false).await
}

/// Undoes what nobody touched since, and leaves the rest as it is now; the turn's record names that.
///
/// # Errors
/// Those of [`undo`] but `undo_conflict`.
pub async fn undo_rest(app: &App, caller: &Caller, c: &str, turn: Uuid) -> Result<Reply> {
    again(app, caller, c, turn, None, true).await
}

async fn again(
    app: &App,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
    leaves_changed: bool,
) -> Result<Reply> {
    let undone = retry::repeat(BRIEF, async || attempt(app, caller, c, turn, key, leaves_changed).await);
    undone.await.map_err(Error::of_delete)
}

async fn attempt(
    app: &App,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
    leaves_changed: bool,
) -> Result<Reply> {
    let tx = TenantTx::write(&app.pool, &caller.actor().in_turn(turn, Origin::Revert)).await?;
    if let Some(key) = key
        && let Some(stored) = key.claim(&tx).await?
    {
        return Ok(stored);
    }
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let row = sqlx::query(
        "SELECT status, on_failure, undone_at, created_at, \
                (SELECT min(h.pruned_seq) FROM feed_head h WHERE h.tenant_id = $1 AND h.campaign_id = $2) AS pruned, \
                (SELECT count(*) FROM journal j WHERE j.tenant_id = $1 AND j.turn_id = $3 AND j.origin <> 'revert' \
                   AND j.seq > turn.reverted_through) AS effects, \
                EXISTS (SELECT FROM journal j WHERE j.tenant_id = $1 AND j.turn_id = $3 AND j.redacted_at IS NOT NULL) AS is_redacted \
         FROM turn WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(turn)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    match row.read::<&str>("status")? {
        "queued" | "running" => {
            return Err(Error::new(Code::TurnInProgress, "The turn is still running; cancel it instead."));
        }
        "succeeded" | "limit_reached" => {}
        // A failed turn that kept its effects has them to give back.
        _ if row.read::<&str>("on_failure")? == "keep" => {}
        _ => return Err(Error::new(Code::Conflict, "The turn failed: it left nothing to undo.")),
    }
    if row.read::<Option<OffsetDateTime>>("undone_at")?.is_some() {
        return Err(Error::new(Code::Conflict, "The turn was undone already."));
    }
    if row.read("is_redacted")? {
        return Err(Error::new(Code::Gone, "Words in what this turn changed were erased: it cannot be taken back."));
    }
    let effects: i64 = row.read("effects")?;
    if effects == 0 && row.read::<Option<i64>>("pruned")?.unwrap_or(0) > 0 {
        return Err(Error::new(Code::Gone, "The journal of this turn has been pruned."));
    }
    let store::Reverted { conflicts, gone } = store::revert(&tx, turn).await?;
    if !leaves_changed {
        edits::refuse_conflicts(conflicts.as_array().into_iter().flatten().map(Conflict::of), "turn")?;
    }
    let row = sqlx::query(
        "UPDATE turn SET undone_at = now(), revert_conflicts = nullif($3, '[]'::jsonb) \
         WHERE tenant_id = $1 AND id = $2 RETURNING undone_at AS at",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(conflicts)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let reply = Reply::ok(
        &json!({ "turn_id": turn, "undone_at": row.read::<OffsetDateTime>("at")?.format(&Rfc3339).map_err(Error::internal)?, "changes_reverted": effects - gone }),
    )?;
    if let Some(key) = key {
        key.store(&tx, &reply).await?;
    }
    tx.commit().await?;
    Ok(reply)
}
