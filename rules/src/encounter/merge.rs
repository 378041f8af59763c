//! What a fight did, written into a record.

use super::{Changes, ParticipantUpdate, Snapshot, fold, snapshot::is_active};
use crate::{
    sheet::{Concentration, Condition, Creature},
    srd::same,
};

/// What of an update is written, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// Whether the record still is what it was when its owner joined.
    pub unchanged: bool,
    /// Conditions stay as they are.
    pub exclude_conditions: bool,
    /// Spell slots stay as they are.
    pub exclude_spell_slots: bool,
}

impl MergeOptions {
    /// Everything, into a record nobody else changed.
    pub const ALL: Self = Self { unchanged: true, exclude_conditions: false, exclude_spell_slots: false };
}

/// Writes an update into the record and says what changed there.
///
/// A record that is `unchanged` gets the final values. Another gets the differences: hit points, slots and resources by
/// how much they changed, within 0 and the record's maximum; conditions one by one, so that what was added meanwhile stays.
pub fn merge(record: &mut Creature, update: &ParticipantUpdate, options: MergeOptions) -> Changes {
    let before = Snapshot::of(record);
    let changes = &update.changes;
    let number = |own: i32, initial: i32, now: i32| {
        if options.unchanged { now } else { own.saturating_add(now.saturating_sub(initial)) }
    };
    // Exhaustion decides how many hit points there can be, so conditions come first.
    if !options.exclude_conditions {
        conditions(record, changes, options.unchanged);
    }
    if changes.hp.delta != 0 {
        record.hp = number(record.hp, changes.hp.initial, changes.hp.now);
    }
    if let Some(temp) = changes.temp_hp {
        record.temp_hp = number(record.temp_hp, temp.initial, temp.now);
    }
    for slot in changes.spell_slots.iter().flatten().filter(|s| s.expended != 0 && !options.exclude_spell_slots) {
        if let Some((_, own)) = record.spell_slots.iter_mut().find(|(key, _)| key.trim().parse() == Ok(slot.level)) {
            own.remaining = number(own.remaining, slot.initial, slot.now);
        }
    }
    for resource in changes.resources.iter().flatten().filter(|r| r.delta != 0) {
        if let Some(own) = record.resources.iter_mut().find(|r| same(&r.name, &resource.name)) {
            own.remaining = number(own.remaining, resource.initial, resource.now);
        }
    }
    life(record, changes);
    effects(record, changes);
    fold::bound(record);
    let mut written = Changes::between(&before, &Snapshot::of(record));
    written.statistics = changes.statistics;
    for detail in &mut written.conditions.details {
        if let Some(known) = changes.conditions.details.iter().find(|d| same(&d.name, &detail.name)) {
            detail.clone_from(&super::ConditionDetail { source: detail.source.clone(), ..known.clone() });
        }
    }
    written
}

fn conditions(record: &mut Creature, changes: &Changes, unchanged: bool) {
    let diff = &changes.conditions;
    record.conditions.retain(|c| is_active(c) && !diff.removed.iter().any(|name| same(name, &c.name)));
    let moved = diff.added.iter().chain(&diff.changed);
    for name in moved {
        let Some(detail) = diff.details.iter().find(|d| same(&d.name, name)) else { continue };
        let mut condition = detail.on_sheet();
        match record.conditions.iter_mut().find(|c| same(&c.name, name)) {
            Some(own) if unchanged => *own = condition,
            Some(own) => *own = worse(own, &condition),
            // Somebody else ended it meanwhile.
            None if diff.changed.contains(name) => {}
            None => {
                condition.name.clone_from(name);
                record.conditions.push(condition);
            }
        }
    }
}

/// Of one condition from two sides: the higher level, the longer time.
fn worse(own: &Condition, other: &Condition) -> Condition {
    let rounds_remaining = own.rounds_remaining.zip(other.rounds_remaining).map(|(a, b)| a.max(b));
    Condition { level: own.level.max(other.level), rounds_remaining, ..own.clone() }
}

/// Death saving throws and concentration. Who died stays dead; who has hit points after all makes no saves and is awake.
fn life(record: &mut Creature, changes: &Changes) {
    if let Some(saves) = &changes.death_saves {
        record.death_saves = saves.now;
        if saves.now.failures >= 3 {
            record.hp = 0;
        }
    }
    if record.hp > 0 {
        record.death_saves = crate::sheet::DeathSaves::default();
        let fell = changes.hp.now == 0 && changes.conditions.added.iter().any(|name| same(name, "unconscious"));
        record.conditions.retain(|c| !fell || !same(&c.name, "unconscious"));
    }
    if let Some(concentration) = &changes.concentration {
        record.concentration = concentration.now.clone().map(|spell| Concentration { spell });
    }
    for flag in &changes.rest_flags {
        record.turn_flags.insert(flag.clone(), "rest".to_owned());
    }
}

/// Effects one by one: those that ended go, those that began or run on are as they are now.
fn effects(record: &mut Creature, changes: &Changes) {
    let Some(effects) = &changes.effects else { return };
    let has = |list: &[crate::sheet::ActiveEffect], name: &str| list.iter().any(|e| same(&e.name, name));
    record.effects.retain(|e| has(&effects.now, &e.name) || !has(&effects.initial, &e.name));
    for effect in effects.now.iter().filter(|e| !effects.initial.contains(e)) {
        record.effects.retain(|e| !same(&e.name, &effect.name));
        record.effects.push(effect.clone());
    }
}
