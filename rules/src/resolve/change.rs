//! The changes that an outcome requires, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    sheet::{ActiveEffect, Concentration, Condition, Creature, DeathSaves},
    srd::same,
};

/// Damage of one type, before and after the target's resistances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamageTaken {
    /// Damage type; empty when it has none.
    pub damage_type: String,
    /// The damage before reductions.
    pub amount: i32,
    /// The damage after reductions.
    pub taken: i32,
}

/// One change to a creature, which is named by [`Creature::key`]. Numbers such as `hp` are the new values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each says what it is; their fields are those of the sheet")]
pub enum StateChange {
    /// It took damage.
    Damage { creature: String, parts: Vec<DamageTaken>, total: i32, absorbed_by_temp: i32, hp: i32, temp_hp: i32 },
    /// It regained hit points.
    Heal { creature: String, amount: i32, hp: i32 },
    /// Its temporary hit points changed.
    TempHp { creature: String, temp_hp: i32 },
    /// It died: 0 hit points and three failures.
    Dies { creature: String },
    /// Its death saving throws changed.
    DeathSaves { creature: String, successes: i32, failures: i32 },
    /// It used one spell slot.
    SpendSlot { creature: String, level: i32 },
    /// The number of slots left of a level changed.
    SetSlot { creature: String, level: i32, remaining: i32 },
    /// It used a resource.
    SpendResource { creature: String, name: String, amount: i32 },
    /// The amount left of a resource changed.
    SetResource { creature: String, name: String, remaining: i32 },
    /// The number of hit dice left changed.
    SetHitDice { creature: String, remaining: i32 },
    /// It used something that can only be used once in this turn, or (`rest`) once per long rest.
    SetFlag { creature: String, flag: String, turn_key: String },
    /// It can use again what can only be used once per long rest.
    ClearFlags { creature: String },
    /// A condition begins or gets another level.
    AddCondition { creature: String, condition: Condition },
    /// A condition ends.
    RemoveCondition { creature: String, name: String },
    /// An effect begins.
    AddEffect { creature: String, effect: ActiveEffect },
    /// An effect ends.
    RemoveEffect { creature: String, name: String },
    /// It begins to concentrate on a spell, and on nothing else.
    StartConcentration { creature: String, spell: String },
    /// Its concentration ends. What the spell did to others must end with it.
    EndConcentration { creature: String, spell: String },
    /// It must make a Constitution saving throw to keep concentrating. This changes nothing by itself.
    ConcentrationCheck { creature: String, dc: i32, damage: i32 },
}

impl StateChange {
    /// The creature that it changes.
    #[must_use]
    pub fn creature(&self) -> &str {
        match self {
            Self::Damage { creature, .. }
            | Self::Heal { creature, .. }
            | Self::TempHp { creature, .. }
            | Self::Dies { creature }
            | Self::DeathSaves { creature, .. }
            | Self::SpendSlot { creature, .. }
            | Self::SetSlot { creature, .. }
            | Self::SpendResource { creature, .. }
            | Self::SetResource { creature, .. }
            | Self::SetHitDice { creature, .. }
            | Self::SetFlag { creature, .. }
            | Self::ClearFlags { creature }
            | Self::AddCondition { creature, .. }
            | Self::RemoveCondition { creature, .. }
            | Self::AddEffect { creature, .. }
            | Self::RemoveEffect { creature, .. }
            | Self::StartConcentration { creature, .. }
            | Self::EndConcentration { creature, .. }
            | Self::ConcentrationCheck { creature, .. } => creature,
        }
    }
}

/// Applies the changes to this creature in order, and ignores those to others.
pub fn apply(creature: &mut Creature, changes: &[StateChange]) {
    let key = creature.key().to_owned();
    for change in changes.iter().filter(|c| c.creature() == key) {
        one(creature, change);
    }
}

fn one(it: &mut Creature, change: &StateChange) {
    match change {
        StateChange::Damage { hp, temp_hp, .. } => (it.hp, it.temp_hp) = (*hp, *temp_hp),
        StateChange::Heal { hp, .. } => it.hp = *hp,
        StateChange::TempHp { temp_hp, .. } => it.temp_hp = *temp_hp,
        StateChange::Dies { .. } => (it.hp, it.death_saves.failures) = (0, 3),
        StateChange::DeathSaves { successes, failures, .. } => {
            it.death_saves = DeathSaves { successes: *successes, failures: *failures };
        }
        StateChange::SpendSlot { level, .. } => {
            if let Some(slot) = it.spell_slots.get_mut(&level.to_string()) {
                slot.remaining = slot.remaining.saturating_sub(1).max(0);
            }
        }
        StateChange::SetSlot { level, remaining, .. } => {
            if let Some(slot) = it.spell_slots.get_mut(&level.to_string()) {
                slot.remaining = *remaining;
            }
        }
        StateChange::SpendResource { name, amount, .. } => {
            if let Some(pool) = it.resources.iter_mut().find(|r| same(&r.name, name)) {
                pool.remaining = pool.remaining.saturating_sub(*amount).max(0);
            }
        }
        StateChange::SetResource { name, remaining, .. } => {
            if let Some(pool) = it.resources.iter_mut().find(|r| same(&r.name, name)) {
                pool.remaining = *remaining;
            }
        }
        StateChange::SetHitDice { remaining, .. } => {
            if let Some(dice) = it.hit_dice.as_mut() {
                dice.remaining = *remaining;
            }
        }
        StateChange::SetFlag { flag, turn_key, .. } => drop(it.turn_flags.insert(flag.clone(), turn_key.clone())),
        StateChange::ClearFlags { .. } => it.turn_flags = BTreeMap::new(),
        StateChange::AddCondition { condition, .. } => add_condition(it, condition),
        StateChange::RemoveCondition { name, .. } => it.conditions.retain(|c| !same(&c.name, name)),
        StateChange::AddEffect { effect, .. } => {
            it.effects.retain(|e| !same(&e.name, &effect.name));
            it.effects.push(effect.clone());
        }
        StateChange::RemoveEffect { name, .. } => it.effects.retain(|e| !same(&e.name, name)),
        StateChange::StartConcentration { spell, .. } => {
            it.concentration = Some(Concentration { spell: spell.clone() });
        }
        StateChange::EndConcentration { .. } => it.concentration = None,
        StateChange::ConcentrationCheck { .. } => {}
    }
}

fn add_condition(it: &mut Creature, condition: &Condition) {
    let at_zero = condition.level.is_some_and(|l| l <= 0);
    it.conditions.retain(|c| !same(&c.name, &condition.name));
    if !at_zero {
        it.conditions.push(condition.clone());
    }
}
