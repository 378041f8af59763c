//! Stores a decision made without a model as a turn, so that a later turn can tell it, and it can be read and undone.

use uuid::Uuid;

use crate::turns::{
    kind::TurnKind,
    record::recorded,
    store::{self, NewTurn},
    subject::Subject,
    view::{Status, ToolCall, Trace, TurnView},
};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::caller::Caller;

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
    let subject = Subject::of_character(TurnKind::Rules, campaign, player);
    let view = TurnView {
        model: "none".to_owned(),
        narrative: raw.to_owned(),
        tool_calls: vec![call.clone()],
        ..TurnView::new(turn, &subject, Status::Succeeded)
    };
    let trace = Trace { player_id: Some(player), ..Trace::default() };
    let new = NewTurn::new(turn, subject, action, caller, instance);
    store::keep(tx, &new, Status::Succeeded, &recorded(view, None, &trace)?.record).await
}
