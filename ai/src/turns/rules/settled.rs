//! Stores a decision made without a model as a turn, so that a later turn can tell it, and it can be read and undone.

use uuid::Uuid;

use crate::turns::{Status, Timings, ToolCall, Trace, TurnView, created_at, talk::body_and_record};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::caller::Caller;
use llm::Usage;

/// The turn of a decision.
#[derive(Clone, Copy)]
pub struct Settled {
    pub turn: Uuid,
    pub campaign: Uuid,
    pub player: Uuid,
    /// The server's number.
    pub instance: i64,
}

/// Stores the turn of a decision, in the transaction that made it. One statement.
///
/// # Errors
/// Database errors.
pub async fn keep(tx: &TenantTx, caller: &Caller, settled: Settled, action: &str, call: &ToolCall) -> Result<()> {
    let Settled { turn, campaign, player, instance } = settled;
    let raw = call.result.as_ref().and_then(|result| result.get("raw")?.as_str()).unwrap_or_default();
    let view = TurnView {
        id: turn,
        kind: "rules",
        status: Status::Succeeded,
        campaign_id: campaign,
        entity_id: player,
        player_id: Some(player),
        model: "none".to_owned(),
        narrative: raw.to_owned(),
        tool_calls: vec![call.clone()],
        narration: None,
        planned: None,
        mechanics: None,
        ending: None,
        parse_error: None,
        role: None,
        context: None,
        dice_unused: None,
        prompt: None,
        parent_turn_id: None,
        usage: Usage::default(),
        timings_ms: Timings::default(),
        created_at: created_at(turn),
    };
    let trace = Trace {
        player_id: Some(player),
        action,
        turn_text: "",
        lore: Vec::new(),
        cut: Vec::new(),
        llm_calls: &[],
        removed: &[],
        revert_conflicts: None,
    };
    sqlx::query(
        "INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, record, key_id, instance, \
             lease_until, finished_at) \
         VALUES ($1, $2, $3, 'rules', 'succeeded', $4, $4, $5, $6::text::json, $7, $8, now(), now())",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(campaign)
    .bind(player)
    .bind(action)
    .bind(body_and_record(&view, None, &trace)?.1)
    .bind(caller.author())
    .bind(instance)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}
