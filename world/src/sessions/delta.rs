//! What changed in the game since the AI's last turn. Frontends and models know the names of the fields.
//!
//! A delta is a sum of pieces. Each piece has the same shape as the whole, so a frontend's report is stored in the form in which it
//! is passed on, and [`Delta::add`] computes the sum. Empty fields are left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use utoipa::ToSchema;

use base::error::{Error, Result};

/// What a model reads if nothing changed.
pub const NO_CHANGES: &str = "No changes to game state since last AI turn";
/// The most entries of one list. Only the newest are kept.
const LIST_MAX: usize = 100;

/// A roll of the dice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiceRoll {
    pub formula: String,
    /// The total.
    #[schema(value_type = f64)]
    pub result: Number,
    #[serde(default)]
    pub flavor: String,
}

/// A fight that began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Started {
    pub id: String,
    pub name: String,
}

/// A participant who was hurt, healed or got a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CombatantChange {
    pub actor_id: String,
    #[serde(default)]
    pub hp_change: i64,
    #[serde(default)]
    pub new_status_effects: Vec<String>,
}

/// A change of the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SceneChange {
    pub new_scene_id: String,
    #[serde(default)]
    pub new_scene_name: String,
}

/// A token that moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenMove {
    pub token_id: String,
    #[schema(value_type = f64)]
    pub x: Number,
    #[schema(value_type = f64)]
    pub y: Number,
}

/// A token that was added to the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    pub token_id: String,
    #[serde(default)]
    pub actor_id: Option<String>,
    #[schema(value_type = f64)]
    pub x: Number,
    #[schema(value_type = f64)]
    pub y: Number,
}

/// A position in a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Position {
    #[schema(value_type = f64)]
    pub x: Number,
    #[schema(value_type = f64)]
    pub y: Number,
}

/// A note that was added, moved or renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NoteChange {
    pub note_id: String,
    #[serde(default)]
    pub entry_name: String,
    pub position: Position,
}

/// A light that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LightChange {
    pub light_source_id: String,
    pub new_status: String,
}

/// A door that was opened or closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DoorChange {
    pub door_id: String,
    pub new_state: String,
}

/// An item that somebody received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemGain {
    pub actor_id: String,
    pub item_name: String,
}

/// Details without a field of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Details {
    /// Fights that began before the one in `EncounterStarted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub encounters_started_before: Vec<Started>,
    /// How many older entries of a list were left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

impl Details {
    fn is_empty(&self) -> bool {
        self.encounters_started_before.is_empty() && self.left_out.is_empty()
    }
}

fn none(n: &u64) -> bool {
    *n == 0
}

fn not(b: &bool) -> bool {
    !b
}

/// The changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "PascalCase")]
pub struct Delta {
    #[serde(skip_serializing_if = "none")]
    pub new_messages: u64,
    #[serde(skip_serializing_if = "none")]
    pub deleted_messages: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_dice_rolls: Vec<DiceRoll>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encounter_started: Option<Started>,
    #[serde(skip_serializing_if = "not")]
    pub encounter_ended: bool,
    #[serde(skip_serializing_if = "not")]
    pub turn_advanced: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub combatant_changed: Vec<CombatantChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scene_changed: Option<SceneChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_moved: Vec<TokenMove>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scene_note_updated: Vec<NoteChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_created: Vec<NewToken>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scene_lighting_changed: Vec<LightChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub door_state_changed: Vec<DoorChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub item_acquired: Vec<ItemGain>,
    #[serde(rename = "details", skip_serializing_if = "Details::is_empty")]
    pub details: Details,
}

impl Delta {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds later changes.
    pub fn add(&mut self, later: Self) {
        self.new_messages += later.new_messages;
        self.deleted_messages += later.deleted_messages;
        if let Some(started) = later.encounter_started
            && let Some(before) = self.encounter_started.replace(started)
        {
            self.details.encounters_started_before.push(before);
        }
        self.encounter_ended |= later.encounter_ended;
        self.turn_advanced |= later.turn_advanced;
        self.scene_changed = later.scene_changed.or(self.scene_changed.take());
        for change in later.combatant_changed {
            match self.combatant_changed.iter_mut().find(|c| c.actor_id == change.actor_id) {
                Some(known) => {
                    known.hp_change = known.hp_change.saturating_add(change.hp_change);
                    let fresh = change.new_status_effects.into_iter().filter(|e| !known.new_status_effects.contains(e));
                    let fresh: Vec<_> = fresh.collect();
                    known.new_status_effects.extend(fresh);
                }
                None => self.combatant_changed.push(change),
            }
        }
        // Of a token's moves, only the last one is kept.
        self.token_moved.retain(|t| !later.token_moved.iter().any(|l| l.token_id == t.token_id));
        self.token_moved.extend(later.token_moved);
        self.new_dice_rolls.extend(later.new_dice_rolls);
        self.scene_note_updated.extend(later.scene_note_updated);
        self.token_created.extend(later.token_created);
        self.scene_lighting_changed.extend(later.scene_lighting_changed);
        self.door_state_changed.extend(later.door_state_changed);
        self.item_acquired.extend(later.item_acquired);
        self.details.encounters_started_before.extend(later.details.encounters_started_before);
        for (name, n) in later.details.left_out {
            *self.details.left_out.entry(name).or_default() += n;
        }
        self.bound();
    }

    /// Keeps only visible changes of those who are not friends: their new conditions, but not how much they were hurt or healed.
    pub fn veil_combatants(&mut self, is_friend: impl Fn(&str) -> bool) {
        self.combatant_changed.retain_mut(|change| {
            if !is_friend(&change.actor_id) {
                change.hp_change = 0;
            }
            change.hp_change != 0 || !change.new_status_effects.is_empty()
        });
    }

    /// Counts older entries of a list that were left out.
    pub fn leave_out(&mut self, field: &str, n: u64) {
        if n > 0 {
            *self.details.left_out.entry(field.to_owned()).or_default() += n;
        }
    }

    fn bound(&mut self) {
        fn newest<T>(list: &mut Vec<T>) -> u64 {
            let over = list.len().saturating_sub(LIST_MAX);
            list.drain(..over);
            over as u64
        }
        for (field, left_out) in [
            ("NewDiceRolls", newest(&mut self.new_dice_rolls)),
            ("CombatantChanged", newest(&mut self.combatant_changed)),
            ("TokenMoved", newest(&mut self.token_moved)),
            ("SceneNoteUpdated", newest(&mut self.scene_note_updated)),
            ("TokenCreated", newest(&mut self.token_created)),
            ("SceneLightingChanged", newest(&mut self.scene_lighting_changed)),
            ("DoorStateChanged", newest(&mut self.door_state_changed)),
            ("ItemAcquired", newest(&mut self.item_acquired)),
            ("EncounterStarted", newest(&mut self.details.encounters_started_before)),
        ] {
            self.leave_out(field, left_out);
        }
    }

    /// The delta as clients and models see it: `has_changes`, the changes, and a sentence if there are none.
    ///
    /// # Errors
    /// `internal` if it cannot be written as JSON.
    pub fn to_view(&self) -> Result<Value> {
        if self.is_empty() {
            return Ok(json!({ "has_changes": false, "message": NO_CHANGES }));
        }
        let mut shown = serde_json::Map::new();
        shown.insert("has_changes".to_owned(), true.into());
        if let Value::Object(members) = serde_json::to_value(self).map_err(Error::internal)? {
            shown.extend(members);
        }
        Ok(Value::Object(shown))
    }
}

/// A delta as the API returns it.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeltaView {
    pub has_changes: bool,
    /// `No changes to game state since last AI turn` if nothing changed, or else null.
    pub message: Option<String>,
    #[serde(flatten)]
    pub delta: Delta,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(id: &str, x: i64) -> Delta {
        let token = TokenMove { token_id: id.to_owned(), x: x.into(), y: 0.into() };
        Delta { token_moved: vec![token], ..Delta::default() }
    }

    #[test]
    fn nothing_is_a_sentence() {
        let shown = Delta::default().to_view().unwrap();
        assert_eq!(shown, json!({ "has_changes": false, "message": "No changes to game state since last AI turn" }));
    }

    #[test]
    fn a_start_and_an_end_are_both_told() {
        let started = |id: &str| Delta {
            encounter_started: Some(Started { id: id.to_owned(), name: "Combat Encounter".to_owned() }),
            ..Delta::default()
        };
        let mut delta = started("a");
        delta.add(Delta { encounter_ended: true, ..Delta::default() });
        delta.add(started("b"));
        let shown = delta.to_view().unwrap();
        assert_eq!(shown["EncounterStarted"]["id"], "b");
        assert_eq!(shown["EncounterEnded"], true);
        assert_eq!(shown["details"]["encounters_started_before"][0]["id"], "a");
        assert_eq!(shown.get("NewMessages"), None);
    }

    #[test]
    fn lists_are_bounded_and_say_so() {
        let mut delta = moved("goblin", 1);
        delta.add(moved("goblin", 2));
        assert_eq!(delta.token_moved.len(), 1);
        assert_eq!(delta.token_moved[0].x, 2.into());
        for n in 0..150 {
            delta.add(moved(&n.to_string(), n));
        }
        assert_eq!((delta.token_moved.len(), delta.details.left_out["TokenMoved"]), (100, 51));
    }
}
