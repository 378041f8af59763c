//! Active fights, as a session's model sees them.

use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{
    eyes::Eyes,
    store::{self, Stored},
};
use base::error::Result;
use base::stored::Columns;
use db::tenancy::TenantTx;

/// The most fights that are read, newest first.
const FIGHTS_MAX: i64 = 100;

/// An active fight.
pub struct Combat {
    pub id: Uuid,
    /// `{in_combat, combat_id, name?, round, turn, combatants, last_updated}`.
    pub view: Value,
}

/// The campaign's active fights, as the reader may see them. One statement.
///
/// # Errors
/// Database errors.
pub async fn going_on(tx: &TenantTx, campaign: Uuid, eyes: Eyes) -> Result<Vec<Combat>> {
    let rows = sqlx::query(store::ACTIVE)
        .bind(tx.tenant())
        .bind(campaign)
        .bind(FIGHTS_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| Ok(combat_view(&Stored::of(row)?, eyes, row.read("updated_at")?))).collect()
}

fn combat_view(it: &Stored, eyes: Eyes, updated_at: OffsetDateTime) -> Combat {
    let current = it.now.current().map(|p| p.id.as_str());
    let known = it.now.turn_order().into_iter().filter(|p| eyes.knows(&it.now, p));
    let combatants = known.map(|p| {
        let conditions: Vec<_> = p.creature.conditions.iter().map(|c| c.name.as_str()).collect();
        let mut told = json!({
            "name": p.creature.name, "initiative": p.initiative, "is_player": p.character_id.is_some(),
            "is_current_turn": Some(p.id.as_str()) == current, "token_id": p.id, "conditions": conditions,
        });
        if eyes.sees_through(&it.now, p) {
            told["hp"] = json!(p.creature.hp);
            told["max_hp"] = json!(p.creature.max_hp_now());
        }
        if let Some(character) = &p.character_id {
            told["character_id"] = json!(character);
        }
        if p.hidden && eyes == Eyes::Master {
            told["hidden"] = json!(true);
        }
        told
    });
    let mut told = json!({
        "in_combat": true, "combat_id": it.id, "round": it.now.round(), "turn": eyes.turn(&it.now),
        "combatants": combatants.collect::<Vec<_>>(), "last_updated": updated_at.format(&Rfc3339).unwrap_or_default(),
    });
    if !it.name.is_empty() {
        told["name"] = json!(it.name);
    }
    Combat { id: it.id, view: told }
}
