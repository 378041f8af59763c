//! Asks a running turn to stop.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::words;
use crate::state::Ai;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::pool::{Need, with_need};
use edge::{
    caller::Caller,
    http::{
        Answer, Written,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
};
use entity::TurnId;

/// A turn that was asked to stop.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnCancelling {
    /// The turn's id.
    turn_id: Uuid,
    /// Always `cancelling`.
    status: &'static str,
}

/// Asks a running turn to stop, for the API and the pages. When a player stops a first attempt, it keeps its effects.
///
/// # Errors
/// `conflict` if it has ended, or has acted in a fight; `forbidden` for a reaction; `not_found`.
pub async fn cancel(
    app: &Ai,
    caller: &Caller,
    (campaign, turn): (&str, TurnId),
    key: Option<&IdempotencyKey>,
) -> Result<Written<TurnCancelling>> {
    let cancelled = edge::http::write(app, caller, key, async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(campaign)).await?;
        let row = sqlx::query(
            "UPDATE turn SET cancel_requested = cancel_requested OR NOT $5 AND status IN ('queued', 'running'), \
                    stop_requested = stop_requested OR $5 AND status IN ('queued', 'running'), \
                    on_failure = CASE WHEN $5 AND status IN ('queued', 'running') AND NOT cancel_requested AND revert_as IS NULL \
                        AND parent_turn_id IS NULL THEN 'keep' ELSE on_failure END \
             WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND ($4::uuid IS NULL OR player_id = $4) \
             RETURNING status, kind, turn_is_unheard(tenant_id, id) AS is_unheard, parent_turn_id IS NOT NULL AND EXISTS ( \
                 SELECT FROM journal j WHERE j.tenant_id = $1 AND j.turn_id = $3 AND j.table_name = 'encounter') AS is_in_fight",
        )
        .bind(tx.tenant())
        .bind(campaign)
        .bind(turn.0)
        .bind(caller.player)
        // Otherwise a player could take back each outcome that is not welcome.
        .bind(!caller.sees_secrets())
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("turn"))?;
        words::may_hear(caller, row.read("kind")?)?;
        if caller.is_player() && row.read("is_unheard")? {
            let message = "A player cannot stop the reaction of an NPC or owner.";
            return Err(Error::new(Code::Forbidden, message));
        }
        if !caller.sees_secrets() && row.read("is_in_fight")? {
            let message = "This attempt has acted in a fight, so only a game master can cancel it.";
            return Err(Error::new(Code::Conflict, message));
        }
        let status: String = row.read("status")?;
        if status != "queued" && status != "running" {
            return Err(Error::new(Code::Conflict, format!("The turn has ended: {status}.")));
        }
        app.running.cancel(turn.0);
        Ok(Answer::accepted(TurnCancelling { turn_id: turn.0, status: "cancelling" }))
    });
    with_need(Need::End, cancelled).await
}
