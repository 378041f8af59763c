//! What a fight did to each participant: its state when it joined compared with now.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Encounter, Participant, Snapshot, Statistics, Until};
use crate::{
    sheet::{ActiveEffect, Condition, DeathSaves, SpellSlot},
    srd::{Ability, same},
};

/// A number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = NumberChange)]
pub struct NumberDiff {
    /// The value before.
    pub initial: i32,
    /// The value after.
    #[serde(rename = "final")]
    pub now: i32,
    /// After minus before.
    pub delta: i32,
}

impl NumberDiff {
    const fn of(initial: i32, now: i32) -> Self {
        Self { initial, now, delta: now.saturating_sub(initial) }
    }
}

/// Any other value, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Difference<T> {
    /// The value before.
    pub initial: T,
    /// The value after.
    #[serde(rename = "final")]
    pub now: T,
}

/// A condition in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConditionDetail {
    /// The name.
    pub name: String,
    /// The source. If it is a participant, the id of its record, or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `rounds`, `concentration`, `until_dispelled`, `until_rest` or `save_ends`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<super::Duration>,
    /// Rounds left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_remaining: Option<i32>,
    /// The level of exhaustion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<i32>,
    /// The DC of the save that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_ability: Option<Ability>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl ConditionDetail {
    /// The condition as a sheet has it.
    #[must_use]
    pub fn on_sheet(&self) -> Condition {
        Condition {
            name: self.name.clone(),
            source: self.source.clone(),
            rounds_remaining: self.rounds_remaining,
            level: self.level,
            until_rest: self.duration == Some(super::Duration::UntilRest),
        }
    }
}

/// Conditions by name, with the details of the active ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ConditionsChange)]
pub struct ConditionsDiff {
    /// Active before.
    #[schema(required = true)]
    pub initial: Vec<String>,
    /// Active now but not before.
    #[schema(required = true)]
    pub added: Vec<String>,
    /// Active before but not now.
    #[schema(required = true)]
    pub removed: Vec<String>,
    /// Active before and now, but with another level, other rounds, or another way to end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Active now.
    #[schema(required = true)]
    pub active: Vec<String>,
    /// Details of those that are active now.
    #[schema(required = true)]
    pub details: Vec<ConditionDetail>,
    /// Details of those that were active before, for comparison with an edited record. Never written.
    #[serde(skip)]
    pub initial_details: Vec<ConditionDetail>,
}

/// Spell slots of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SpellSlotChange)]
pub struct SlotDiff {
    /// The level.
    pub level: i32,
    /// Slots left before.
    pub initial: i32,
    /// Slots left now.
    #[serde(rename = "final")]
    pub now: i32,
    /// Slots used.
    pub expended: i32,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ResourceChange)]
pub struct ResourceDiff {
    /// The name.
    pub name: String,
    /// Uses left before.
    pub initial: i32,
    /// Uses left now.
    #[serde(rename = "final")]
    pub now: i32,
    /// Now minus before.
    pub delta: i32,
}

/// What changed. Slots and resources are present if the creature has any; other optional values are present if they
/// changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ParticipantChanges)]
pub struct Changes {
    /// Hit points.
    #[schema(required = true)]
    pub hp: NumberDiff,
    /// Temporary hit points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_hp: Option<NumberDiff>,
    /// Conditions.
    #[schema(required = true)]
    pub conditions: ConditionsDiff,
    /// Spell slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spell_slots: Option<Vec<SlotDiff>>,
    /// Class resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ResourceDiff>>,
    /// Death saving throws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub death_saves: Option<Difference<DeathSaves>>,
    /// The spell that it concentrates on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<Difference<Option<String>>>,
    /// Effects such as Bless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Difference<Vec<ActiveEffect>>>,
    /// Hit dice left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_dice: Option<NumberDiff>,
    /// Features that were used in the fight and can only be used once per long rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest_flags: Vec<String>,
    /// Features that were used before, and can be used again after a rest during the fight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cleared_rest_flags: Vec<String>,
    /// What it did and suffered.
    #[schema(required = true)]
    pub statistics: Statistics,
}

impl Changes {
    /// The changes between two snapshots.
    #[must_use]
    pub(super) fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let only = |some: &[String], others: &[String]| {
            some.iter().filter(|f| !others.contains(f)).cloned().collect::<Vec<_>>()
        };
        let hit_dice = before.hit_dice.zip(now.hit_dice).filter(|(initial, now)| initial != now);
        Self {
            hp: NumberDiff::of(before.hp, now.hp),
            temp_hp: (before.temp_hp != now.temp_hp).then(|| NumberDiff::of(before.temp_hp, now.temp_hp)),
            conditions: conditions(before, now),
            spell_slots: slots(before, now),
            resources: resources(before, now),
            death_saves: differ(&before.death_saves, &now.death_saves),
            concentration: differ(&before.concentration, &now.concentration),
            effects: differ(&before.effects, &now.effects),
            hit_dice: hit_dice.map(|(initial, now)| NumberDiff::of(initial, now)),
            rest_flags: only(&now.rest_flags, &before.rest_flags),
            cleared_rest_flags: only(&before.rest_flags, &now.rest_flags),
            statistics: Statistics::default(),
        }
    }

    /// Whether a record would change. Statistics belong to no record.
    #[must_use]
    pub fn any(&self) -> bool {
        let conditions = &self.conditions;
        self.hp.delta != 0
            || self.temp_hp.is_some()
            || !(conditions.added.is_empty() && conditions.removed.is_empty() && conditions.changed.is_empty())
            || self.spell_slots.iter().flatten().any(|s| s.expended != 0)
            || self.resources.iter().flatten().any(|r| r.delta != 0)
            || self.death_saves.is_some()
            || self.concentration.is_some()
            || self.effects.is_some()
            || self.hit_dice.is_some()
            || !(self.rest_flags.is_empty() && self.cleared_rest_flags.is_empty())
    }
}

/// What the fight did to one participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParticipantUpdate {
    /// The id in the encounter.
    pub participant_id: String,
    /// The id of its character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    /// The id of its NPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<String>,
    /// Whether it has no record.
    pub is_ephemeral: bool,
    /// What changed.
    pub changes: Changes,
}

/// Whether any record would change.
#[must_use]
pub fn commit_required(updates: &[ParticipantUpdate]) -> bool {
    updates.iter().any(|u| !u.is_ephemeral && u.changes.any())
}

impl Encounter {
    /// What the fight did to each participant, in the order of joining, then to those with a record who left.
    #[must_use]
    pub fn diff(&self) -> Vec<ParticipantUpdate> {
        self.participants.iter().chain(&self.departed).map(|p| self.update(p)).collect()
    }

    fn update(&self, it: &Participant) -> ParticipantUpdate {
        let now = Snapshot::of(&it.creature);
        let mut changes = Changes::between(&it.initial, &now);
        for detail in &mut changes.conditions.details {
            self.complete(detail, it);
        }
        for effect in changes.effects.iter_mut().flat_map(|e| &mut e.now) {
            effect.source = effect.source.take().map(|s| self.outside(s));
        }
        changes.statistics = it.statistics;
        ParticipantUpdate {
            participant_id: it.id.clone(),
            character_id: it.character_id.clone(),
            npc_id: it.npc_id.clone(),
            is_ephemeral: it.is_ephemeral(),
            changes,
        }
    }

    /// Adds what only the encounter knows of a condition.
    pub(super) fn complete(&self, detail: &mut ConditionDetail, it: &Participant) {
        use super::Duration;
        detail.source = detail.source.take().map(|source| self.outside(source));
        let Some(lasting) = it.lasts(&detail.name) else { return };
        detail.description.clone_from(&lasting.description);
        detail.duration = Some(match &lasting.until {
            Until::Rounds => Duration::Rounds,
            Until::Concentration { .. } => Duration::Concentration,
            Until::Dispelled => Duration::UntilDispelled,
            Until::Rest => Duration::UntilRest,
            Until::Save { dc, ability } => {
                (detail.save_dc, detail.save_ability) = (Some(*dc), Some(*ability));
                Duration::SaveEnds
            }
        });
    }

    /// How a participant is named outside of the encounter: by the id of its record, or by its name.
    fn outside(&self, source: String) -> String {
        match self.anybody(&source) {
            Some(p) => p.record().unwrap_or(&p.creature.name).to_owned(),
            None => source,
        }
    }
}

impl From<&Condition> for ConditionDetail {
    fn from(condition: &Condition) -> Self {
        use super::Duration;
        Self {
            name: condition.name.clone(),
            source: condition.source.clone(),
            duration: match condition.rounds_remaining {
                Some(_) => Some(Duration::Rounds),
                None => condition.until_rest.then_some(Duration::UntilRest),
            },
            rounds_remaining: condition.rounds_remaining,
            level: condition.level,
            save_dc: None,
            save_ability: None,
            description: None,
        }
    }
}

fn differ<T: Clone + PartialEq>(initial: &T, now: &T) -> Option<Difference<T>> {
    (initial != now).then(|| Difference { initial: initial.clone(), now: now.clone() })
}

/// The parts of a condition that can change while it is active.
pub(super) fn runs(it: &Condition) -> (Option<i32>, Option<i32>, bool) {
    (it.level, it.rounds_remaining, it.until_rest)
}

fn conditions(before: &Snapshot, now: &Snapshot) -> ConditionsDiff {
    let names = |list: &[Condition]| list.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    let missing = |list: &[Condition], from: &[Condition]| {
        let gone = list.iter().filter(|c| !from.iter().any(|other| same(&other.name, &c.name)));
        gone.map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    let changed = now.conditions.iter().filter(|c| {
        let known = before.conditions.iter().find(|other| same(&other.name, &c.name));
        known.is_some_and(|k| runs(k) != runs(c))
    });
    ConditionsDiff {
        initial: names(&before.conditions),
        added: missing(&now.conditions, &before.conditions),
        removed: missing(&before.conditions, &now.conditions),
        changed: changed.map(|c| c.name.clone()).collect(),
        active: names(&now.conditions),
        details: now.conditions.iter().map(ConditionDetail::from).collect(),
        initial_details: before.conditions.iter().map(ConditionDetail::from).collect(),
    }
}

fn slots(before: &Snapshot, now: &Snapshot) -> Option<Vec<SlotDiff>> {
    let left = |slot: Option<&SpellSlot>| slot.map_or(0, |s| s.remaining);
    let levels = now.spell_slots.iter().filter_map(|(key, slot)| {
        let initial = left(before.spell_slots.get(key));
        let (level, now) = (key.trim().parse().ok()?, slot.remaining);
        Some(SlotDiff { level, initial, now, expended: initial.saturating_sub(now) })
    });
    let mut levels: Vec<SlotDiff> = levels.collect();
    levels.sort_by_key(|s| s.level);
    (!levels.is_empty()).then_some(levels)
}

fn resources(before: &Snapshot, now: &Snapshot) -> Option<Vec<ResourceDiff>> {
    let all = now.resources.iter().map(|pool| {
        let known = before.resources.iter().find(|r| same(&r.name, &pool.name));
        let initial = known.map_or(0, |r| r.remaining);
        let delta = pool.remaining.saturating_sub(initial);
        ResourceDiff { name: pool.name.clone(), initial, now: pool.remaining, delta }
    });
    let all: Vec<ResourceDiff> = all.collect();
    (!all.is_empty()).then_some(all)
}
