//! Prayers: all owners of the player's location, race, profession and faction answer, each by itself.

use garde::Validate;
use serde::Deserialize;
use serde_json::json;
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::validate};
use world::{
    fallen,
    significance::report::{self, ActionReport, ReactingEntity, Resolved, Triggered, TriggeredReaction, resolve_for},
};

/// The most owners that answer one prayer.
const OWNERS_MAX: usize = 20;
/// The most NPCs and owners that hear of one prayer.
const CONCERNED_MAX: i32 = 1000;

/// A player's prayer.
#[derive(Clone, Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Prayer {
    /// The character that prays, by id or slug.
    pub player_id: String,
    #[garde(custom(validate::says_something), length(chars, max = 2000))]
    #[schema(min_length = 1, max_length = 2000)]
    pub message: String,
}

/// Queues the reactions to a prayer, of owners that are not about to answer one of this player already. For everybody else whom it concerns,
/// it counts as the action `pray`. Four statements, and one for each owner that answers.
///
/// # Errors
/// `not_found` for the campaign, `validation_failed` for the player, `dead`, `unconscious`, `quota_exceeded` if the campaign may have no
/// more reactions within a week.
pub async fn queue(tx: &TenantTx, caller: &Caller, campaign: &str, prayer: &Prayer) -> Result<Triggered> {
    let report = ActionReport {
        player_id: prayer.player_id.clone(),
        kind: "pray".to_owned(),
        targets: Vec::new(),
        location: None,
        text: None,
    };
    let Resolved { mut action, is_fallen, .. } = resolve_for(tx, caller, campaign, &report).await?;
    if is_fallen {
        fallen::check_fallen(tx, action.player_id).await?;
    }
    let rows = sqlx::query(
        "SELECT c.entity_id, c.slug FROM concerned_by($1, $2, $3) c WHERE c.entity_kind = 'owner' ORDER BY c.entity_id",
    )
    .bind(tx.tenant())
    .bind(Json(&action))
    .bind(CONCERNED_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let owners: Vec<(Uuid, String)> =
        rows.iter().map(|row| Ok((row.read("entity_id")?, row.read("slug")?))).collect::<Result<_>>()?;
    // Others who are concerned notice that the character prays. Nobody overhears the words.
    action.except = owners.iter().map(|(id, _)| *id).collect();
    let noticed = report::count(tx, &action).await?.triggered;
    // What this player does is counted one after the other, so no other prayer comes in between from here on.
    let busy = busy(tx, action.player_id, &action.except).await?;
    let mut triggered = Vec::with_capacity(owners.len() + noticed.len());
    let mut free: Vec<(Uuid, String)> = owners.into_iter().filter(|(id, _)| !busy.contains(id)).collect();
    let left_out = free.split_off(free.len().min(OWNERS_MAX));
    for (owner, slug) in free {
        let mut reaction = serde_json::to_value(&action.rules).map_err(Error::internal)?;
        let how = json!({
            "kind": "prayer", "entity_kind": "owner", "entity_id": owner, "player_id": action.player_id,
            "campaign_id": action.campaign_id, "score": action.score, "actions": 1, "message": prayer.message,
            "location_key": null,
        });
        if let (Some(all), Some(how)) = (reaction.as_object_mut(), how.as_object()) {
            all.extend(how.clone());
        }
        let queued = sqlx::query("SELECT queue_reaction($1, $2) AS turn_id")
            .bind(tx.tenant())
            .bind(Json(reaction))
            .fetch_one(&mut *tx.connection().await)
            .await?;
        let turn_id: Uuid = queued.read::<Option<Uuid>>("turn_id")?.ok_or_else(|| {
            Error::new(
                Code::QuotaExceeded,
                "The reactions of today and of the next seven days are used up: of this campaign (`reactions_per_day_max`) or of its tenant (`reactions_per_day`).",
            )
        })?;
        let entity = ReactingEntity { kind: "owner".to_owned(), id: owner, slug };
        triggered.push(TriggeredReaction::queued(entity, turn_id));
    }
    triggered.extend(noticed);
    let left_out = left_out.into_iter().map(|(id, slug)| ReactingEntity { kind: "owner".to_owned(), id, slug });
    Ok(Triggered { triggered, left_out: left_out.collect() })
}

/// Those of these owners who are about to answer a prayer of this player.
async fn busy(tx: &TenantTx, player: Uuid, owners: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = sqlx::query(
        "SELECT entity_id FROM reaction WHERE tenant_id = $1 AND player_id = $2 AND entity_id = ANY ($3) AND kind = 'prayer' \
           AND state IN ('queued', 'running')",
    )
    .bind(tx.tenant())
    .bind(player)
    .bind(owners)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read("entity_id")).collect()
}
