//! Fights in progress, as a session's model sees them.

use rules::encounter::Participant;
use serde::Serialize;
use serde_json::Number;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    eyes::Eyes,
    store::{self, Stored},
};
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// The most fights that are read, newest first.
const FIGHTS_MAX: i64 = 100;

/// A fight in progress, run by the server or reported by a frontend, as its reader sees it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct FightTold {
    /// Always true.
    pub in_combat: bool,
    /// The fight's id.
    pub combat_id: String,
    /// The fight's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The round, from 1.
    pub round: i64,
    /// The place of the present turn in the initiative order.
    pub turn: i64,
    /// The participants, in initiative order.
    pub combatants: Vec<CombatantTold>,
    /// When the fight was last updated.
    pub last_updated: String,
    /// Whether this may be outdated, because the frontend did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
}

/// A participant in a fight, as its reader sees it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CombatantTold {
    pub name: String,
    /// The initiative; null if it was not rolled yet.
    #[schema(required = true, value_type = Option<f64>)]
    pub initiative: Option<Number>,
    pub is_player: bool,
    /// Whether it is this participant's turn.
    pub is_current_turn: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    /// Hit points, where the reader may know them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hp: Option<i64>,
    /// The maximum of hit points, where the reader may know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,
    /// True for somebody of whom players do not know. Only game masters get this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
}

/// The campaign's active fights, as the reader may see them, without those that cannot be read. One statement.
///
/// # Errors
/// Database errors.
pub async fn going_on(tx: &TenantTx, campaign: Uuid, eyes: Eyes) -> Result<Vec<FightTold>> {
    let rows = sqlx::query(store::ACTIVE)
        .bind(tx.tenant())
        .bind(campaign)
        .bind(FIGHTS_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(&rows, |row| Ok(told(&Stored::of(row)?, eyes, row.read("updated_at")?))))
}

fn told(it: &Stored, eyes: Eyes, updated_at: OffsetDateTime) -> FightTold {
    let current = it.now.current().map(|p| p.id.as_str());
    let known = it.now.turn_order().into_iter().filter(|p| eyes.knows(&it.now, p));
    let combatant = |p: &Participant| {
        let has_numbers = eyes.sees_through(&it.now, p);
        CombatantTold {
            name: p.creature.name.clone(),
            initiative: Some(p.initiative.into()),
            is_player: p.character_id.is_some(),
            is_current_turn: Some(p.id.as_str()) == current,
            token_id: Some(p.id.clone()),
            character_id: p.character_id.clone(),
            hp: has_numbers.then(|| p.creature.hp.into()),
            max_hp: has_numbers.then(|| p.creature.max_hp_now().into()),
            conditions: Some(p.creature.conditions.iter().map(|c| c.name.clone()).collect()),
            hidden: (p.hidden && eyes == Eyes::Master).then_some(true),
        }
    };
    FightTold {
        in_combat: true,
        combat_id: it.id.to_string(),
        name: Some(it.name.clone()).filter(|name| !name.is_empty()),
        round: it.now.round().into(),
        turn: i64::try_from(eyes.turn(&it.now)).unwrap_or_default(),
        combatants: known.map(combatant).collect(),
        last_updated: updated_at.format(&Rfc3339).unwrap_or_default(),
        stale: None,
    }
}
