//! The parts of a sheet that a fight can change, at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::lasting::lasts_through_the_turn;
use crate::{
    sheet::{ActiveEffect, Condition, Creature, DeathSaves, Resource, SpellSlot},
    srd::same,
};

/// A participant's state, to compare its beginning with its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "they are those of the sheet")]
#[schema(as = ParticipantSnapshot)]
pub struct Snapshot {
    #[schema(required = true)]
    pub hp: i32,
    #[schema(required = true)]
    pub max_hp: i32,
    #[schema(required = true)]
    pub temp_hp: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<ActiveEffect>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spell_slots: BTreeMap<String, SpellSlot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    #[schema(required = true)]
    pub death_saves: DeathSaves,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<String>,
    /// Hit dice left; `None` for a creature without hit dice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_dice: Option<i32>,
    /// Features used since the last long rest that can only be used once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest_flags: Vec<String>,
}

impl Snapshot {
    /// A snapshot of a creature.
    #[must_use]
    pub fn of(creature: &Creature) -> Self {
        let flags = creature.turn_flags.iter().filter(|(_, key)| key.as_str() == "rest");
        Self {
            hp: creature.hp,
            max_hp: creature.max_hp,
            temp_hp: creature.temp_hp,
            conditions: creature.conditions.iter().filter(|c| is_active(c)).cloned().collect(),
            effects: creature.effects.iter().filter(|e| outlives(e)).cloned().collect(),
            spell_slots: creature.spell_slots.clone(),
            resources: creature.resources.clone(),
            death_saves: creature.death_saves,
            concentration: creature.concentration.as_ref().map(|c| c.spell.clone()),
            hit_dice: creature.hit_dice.map(|dice| dice.remaining),
            rest_flags: flags.map(|(flag, _)| flag.clone()).collect(),
        }
    }
}

/// Whether a condition is active, that is, whether it has rounds left.
pub(super) fn is_active(condition: &Condition) -> bool {
    condition.rounds_remaining.is_none_or(|rounds| rounds > 0)
}

/// Whether an effect lasts beyond the fight. Dodging and helping do not.
fn outlives(effect: &ActiveEffect) -> bool {
    let passing = ["Dodge", "Help", "Reckless Attack", "Shield"];
    let is_running = effect.rounds_remaining.is_none_or(|rounds| rounds > 0) || lasts_through_the_turn(&effect.name);
    is_running && !passing.iter().any(|p| same(p, &effect.name))
}
