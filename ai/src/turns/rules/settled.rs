//! Stores a decision made without a model as a turn, so that a later turn can tell it, and it can be read and undone.

use uuid::Uuid;

use crate::turns::{
    job::OnFailure,
    store::{self, NewTurn, Place},
    talk::body_and_record,
    view::{Status, Timings, ToolCall, Trace, TurnView, created_at},
};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::caller::Caller;
use llm::{ReplyMode, Usage};

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
        turn_text: String::new(),
        lore: Vec::new(),
        cut: Vec::new(),
        llm_calls: &[],
        removed: &[],
        revert_conflicts: None,
    };
    let new = NewTurn {
        id: turn,
        campaign,
        kind: "rules",
        entity: player,
        player: Some(player),
        action,
        mode: ReplyMode::Native,
        on_failure: OnFailure::Revert,
        key_id: caller.author(),
        instance,
        key: None,
        live: None,
        talk_version: None,
        parent: None,
        place: Place::Free,
        said: None,
    };
    store::keep(tx, &new, Status::Succeeded, &body_and_record(&view, None, &trace)?.1).await
}
