//! What the last action did to the participants. It is stored with the encounter's row, so that it is in the journal.
//! Deltas for a session's AI are made from it.

use std::sync::Arc;

use rules::{encounter::Encounter, sheet::Creature};
use serde::{Deserialize, Serialize};

/// The latest action of an encounter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastAction {
    /// Its position in the log; 0 before the first action.
    pub seq: i64,
    pub changes: Vec<Change>,
}

/// A participant that lost or regained hit points or has new conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The character's id, or else the participant's.
    pub actor_id: String,
    pub is_enemy: bool,
    /// Whether only the game master knows of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    pub hp_change: i64,
    pub new_status_effects: Vec<String>,
}

/// The participants before an action.
pub struct Before(Vec<(String, Arc<Creature>)>);

impl Before {
    /// Takes a copy of the current participants.
    #[must_use]
    pub fn of(it: &Encounter) -> Self {
        Self(it.participants().iter().map(|p| (p.id.clone(), p.creature.clone())).collect())
    }

    /// What changed since then, with the action `seq`. Joining is not a change.
    #[must_use]
    pub fn until(&self, it: &Encounter, seq: i64) -> LastAction {
        let mut changes = Vec::new();
        for now in it.participants() {
            let Some((_, then)) = self.0.iter().find(|(id, _)| *id == now.id) else { continue };
            let hp_change = i64::from(now.creature.hp) - i64::from(then.hp);
            let is_new = |name: &str| !then.conditions.iter().any(|c| c.name == name);
            let fresh = now.creature.conditions.iter().filter(|c| is_new(&c.name));
            let new_status_effects: Vec<_> = fresh.map(|c| c.name.clone()).collect();
            if hp_change != 0 || !new_status_effects.is_empty() {
                let actor_id = now.character_id.clone().unwrap_or_else(|| now.id.clone());
                changes.push(Change {
                    actor_id,
                    is_enemy: now.is_enemy,
                    hidden: now.hidden,
                    hp_change,
                    new_status_effects,
                });
            }
        }
        LastAction { seq, changes }
    }
}
