//! Writes a fight's results into a record.

use super::{Changes, ConditionDetail, ParticipantUpdate, Snapshot, diff::runs, fold, snapshot::is_active};
use crate::{
    sheet::{Concentration, Condition, Creature, Life},
    srd::same,
};

/// Which parts of an update to write, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// Whether the record is unchanged since its owner joined.
    pub unchanged: bool,
    /// Whether to leave conditions as they are.
    pub exclude_conditions: bool,
    /// Whether to leave spell slots as they are.
    pub exclude_spell_slots: bool,
}

impl MergeOptions {
    /// Write everything, into an unchanged record.
    pub const ALL: Self = Self { unchanged: true, exclude_conditions: false, exclude_spell_slots: false };
}

/// Writes an update into the record, and returns what changed.
///
/// An `unchanged` record gets the final values. A record that was edited since gets the differences: hit points, slots and
/// resources change by the same amount, between 0 and the record's maximum; conditions are merged one by one, so that those
/// added since stay. An edited record that is dead only takes what was spent, and nothing that concerns life.
pub fn merge(record: &mut Creature, update: &ParticipantUpdate, options: MergeOptions) -> Changes {
    let before = Snapshot::of(record);
    let changes = &update.changes;
    let dead = !options.unchanged && record.life() == Life::Dead;
    let conditions_too = !options.exclude_conditions && !dead;
    // Conditions come first, because exhaustion limits the hit points.
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

/// The new value of one of the record's numbers.
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

/// Merges slots, resources, hit dice, and features that can be used once between rests.
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

/// Copies to a condition's detail what only the encounter knows.
fn tell(detail: &mut ConditionDetail, known: &ConditionDetail) {
    let ends = |it: &ConditionDetail| (it.rounds_remaining.is_some(), it.on_sheet().until_rest);
    if ends(detail) == ends(known) {
        detail.duration = known.duration;
    }
    (detail.save_dc, detail.save_ability) = (known.save_dc, known.save_ability);
    detail.description.clone_from(&known.description);
}

/// Merges conditions one by one. A condition that is unchanged since its owner joined becomes what it became in the
/// fight. If both sides changed it, the worse one counts.
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
            // Somebody else ended it since.
            None if diff.changed.contains(name) => {}
            None => {
                condition.name.clone_from(name);
                record.conditions.push(condition);
            }
        }
    }
}

/// Merges two versions of a condition: the higher level and the longer time.
fn worse(own: &Condition, other: &Condition) -> Condition {
    let rounds_remaining = own.rounds_remaining.zip(other.rounds_remaining).map(|(a, b)| a.max(b));
    // A rest comes later than any round, but earlier than never.
    let ends = |it: &Condition| it.until_rest || it.rounds_remaining.is_some();
    let until_rest = (own.until_rest || other.until_rest) && ends(own) && ends(other);
    Condition { level: own.level.max(other.level), rounds_remaining, until_rest, ..own.clone() }
}

/// Merges death saving throws and concentration. A dead creature stays dead. A creature with hit points makes no saves
/// and is awake.
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

/// Merges effects one by one: ended effects are removed, and new or continuing ones are as in the fight.
fn effects(record: &mut Creature, changes: &Changes) {
    let Some(effects) = &changes.effects else { return };
    let has = |list: &[crate::sheet::ActiveEffect], name: &str| list.iter().any(|e| same(&e.name, name));
    record.effects.retain(|e| has(&effects.now, &e.name) || !has(&effects.initial, &e.name));
    for effect in effects.now.iter().filter(|e| !effects.initial.contains(e)) {
        record.effects.retain(|e| !same(&e.name, &effect.name));
        record.effects.push(effect.clone());
    }
}
