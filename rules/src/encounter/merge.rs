//! What a fight did, written into a record.

use super::{Changes, ConditionDetail, ParticipantUpdate, Snapshot, diff::runs, fold, snapshot::is_active};
use crate::{
    sheet::{Concentration, Condition, Creature, Life},
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
/// Another that is dead stays as dead as it is: it takes what was spent, and nothing that has to do with living.
pub fn merge(record: &mut Creature, update: &ParticipantUpdate, options: MergeOptions) -> Changes {
    let before = Snapshot::of(record);
    let changes = &update.changes;
    let dead = !options.unchanged && record.life() == Life::Dead;
    let conditions_too = !options.exclude_conditions && !dead;
    // Exhaustion decides how many hit points there can be, so conditions come first.
    if conditions_too {
        conditions(record, changes, options.unchanged);
    }
    if !dead {
        points(record, changes, options);
        life(record, changes);
    }
    spent(record, changes, options);
    effects(record, changes);
    fold::bound(record);
    let mut written = Changes::between(&before, &Snapshot::of(record));
    written.statistics = changes.statistics;
    for detail in written.conditions.details.iter_mut().filter(|_| conditions_too) {
        if let Some(known) = changes.conditions.details.iter().find(|d| same(&d.name, &detail.name)) {
            tell(detail, known);
        }
    }
    written
}

/// A number of the record after a fight.
const fn number(own: i32, initial: i32, now: i32, options: MergeOptions) -> i32 {
    if options.unchanged { now } else { own.saturating_add(now.saturating_sub(initial)) }
}

fn points(record: &mut Creature, changes: &Changes, options: MergeOptions) {
    if changes.hp.delta != 0 {
        record.hp = number(record.hp, changes.hp.initial, changes.hp.now, options);
    }
    if let Some(temp) = changes.temp_hp {
        record.temp_hp = number(record.temp_hp, temp.initial, temp.now, options);
    }
}

/// Slots, resources, hit dice, and what can be done once between rests.
fn spent(record: &mut Creature, changes: &Changes, options: MergeOptions) {
    for slot in changes.spell_slots.iter().flatten().filter(|s| s.expended != 0 && !options.exclude_spell_slots) {
        if let Some((_, own)) = record.spell_slots.iter_mut().find(|(key, _)| key.trim().parse() == Ok(slot.level)) {
            own.remaining = number(own.remaining, slot.initial, slot.now, options);
        }
    }
    for resource in changes.resources.iter().flatten().filter(|r| r.delta != 0) {
        if let Some(own) = record.resources.iter_mut().find(|r| same(&r.name, &resource.name)) {
            own.remaining = number(own.remaining, resource.initial, resource.now, options);
        }
    }
    if let Some((own, dice)) = record.hit_dice.as_mut().zip(changes.hit_dice) {
        own.remaining = number(own.remaining, dice.initial, dice.now, options);
    }
    for flag in &changes.cleared_rest_flags {
        record.turn_flags.remove(flag);
    }
    for flag in &changes.rest_flags {
        record.turn_flags.insert(flag.clone(), "rest".to_owned());
    }
}

/// What only the encounter knows of a condition that stands in a record now.
fn tell(detail: &mut ConditionDetail, known: &ConditionDetail) {
    let ends = |it: &ConditionDetail| (it.rounds_remaining.is_some(), it.on_sheet().until_rest);
    if ends(detail) == ends(known) {
        detail.duration = known.duration;
    }
    (detail.save_dc, detail.save_ability) = (known.save_dc, known.save_ability);
    detail.description.clone_from(&known.description);
}

/// Conditions one by one. What the record still has as it was when its owner joined becomes what it became in the fight;
/// of what was changed on both sides the worse counts.
fn conditions(record: &mut Creature, changes: &Changes, unchanged: bool) {
    let diff = &changes.conditions;
    let as_it_was = |own: &Condition| {
        let known = diff.initial_details.iter().find(|d| same(&d.name, &own.name));
        unchanged || known.is_some_and(|d| runs(&d.on_sheet()) == runs(own))
    };
    let removed = |own: &Condition| as_it_was(own) && diff.removed.iter().any(|name| same(name, &own.name));
    record.conditions.retain(|c| is_active(c) && !removed(c));
    let moved = diff.added.iter().chain(&diff.changed);
    for name in moved {
        let Some(detail) = diff.details.iter().find(|d| same(&d.name, name)) else { continue };
        let mut condition = detail.on_sheet();
        match record.conditions.iter_mut().find(|c| same(&c.name, name)) {
            Some(own) if as_it_was(own) => *own = condition,
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
    // A rest is later than any round, and sooner than never.
    let ends = |it: &Condition| it.until_rest || it.rounds_remaining.is_some();
    let until_rest = (own.until_rest || other.until_rest) && ends(own) && ends(other);
    Condition { level: own.level.max(other.level), rounds_remaining, until_rest, ..own.clone() }
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
