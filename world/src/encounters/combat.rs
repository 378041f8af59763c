//! Active fights, as a game master's model sees them.

use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::store::{self, Stored};
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

/// The campaign's active fights. One statement.
///
/// # Errors
/// Database errors.
pub async fn going_on(tx: &TenantTx, campaign: Uuid) -> Result<Vec<Combat>> {
    let rows = sqlx::query(store::ACTIVE)
        .bind(tx.tenant())
        .bind(campaign)
        .bind(FIGHTS_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| Ok(combat_view(&Stored::of(row)?, row.read("updated_at")?))).collect()
}

fn combat_view(it: &Stored, updated_at: OffsetDateTime) -> Combat {
    let current = it.now.current().map(|p| p.id.as_str());
    let combatants = it.now.turn_order().into_iter().map(|p| {
        let conditions: Vec<_> = p.creature.conditions.iter().map(|c| c.name.as_str()).collect();
        let mut told = json!({
            "name": p.creature.name, "initiative": p.initiative, "is_player": p.character_id.is_some(),
            "is_current_turn": Some(p.id.as_str()) == current, "token_id": p.id, "hp": p.creature.hp,
            "max_hp": p.creature.max_hp_now(), "conditions": conditions,
        });
        if let Some(character) = &p.character_id {
            told["character_id"] = json!(character);
        }
        if p.hidden {
            told["hidden"] = json!(true);
        }
        told
    });
    let mut told = json!({
        "in_combat": true, "combat_id": it.id, "round": it.now.round(), "turn": it.now.turn(),
        "combatants": combatants.collect::<Vec<_>>(), "last_updated": updated_at.format(&Rfc3339).unwrap_or_default(),
    });
    if !it.name.is_empty() {
        told["name"] = json!(it.name);
    }
    Combat { id: it.id, view: told }
}
