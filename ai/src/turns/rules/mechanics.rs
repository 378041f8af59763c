//! The decision of an earlier turn, for a turn that tells it.

use edge::auth::player;
use serde_json::Value;
use uuid::Uuid;

use crate::{state::Ai, turns::view::Mechanics};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::resource::{Ref, campaign_id},
};

/// The decision of an earlier rules turn or planned command. If a player is given, it must be that player's turn.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/mechanics_turn_id`.
pub async fn mechanics(
    app: &Ai,
    caller: &Caller,
    campaign: &str,
    player: Option<&str>,
    turn: Uuid,
) -> Result<Mechanics> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let player = match player {
        Some(player) => Some(player::id(&tx, campaign, player).await?),
        None => None,
    };
    let row = sqlx::query(
        "SELECT record #> '{view,tool_calls}' AS calls FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND campaign_id = $3 AND ($4::uuid IS NULL OR player_id = $4) \
           AND kind IN ('rules', 'planner') AND status = 'succeeded' AND undone_at IS NULL",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(campaign)
    .bind(player)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let calls: Option<Value> = row.map(|row| row.read("calls")).transpose()?;
    let decided = calls.as_ref().and_then(Value::as_array).and_then(|calls| calls.last()?.get("result").cloned());
    let Some(Value::Object(mut parsed)) = decided else {
        let message = "There is no such turn with a valid decision of the rules in this campaign.";
        return Err(Error::invalid("/mechanics_turn_id", "unknown_reference", message));
    };
    let raw = parsed.remove("raw").as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Mechanics { turn_id: turn, raw, parsed: Value::Object(parsed) })
}
