//! Computes the state after an event. This never fails: an event that makes no sense changes nothing, and every number
//! stays within its limits.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Cast, Cost, Encounter, Event, Lasting, Participant, Provocation, Stance, Status,
    limits::{LIST_MAX, NOTES_CHARS_MAX, PARTICIPANTS_MAX, ROUNDS_MAX},
};
use crate::{
    resolve::{StateChange, apply as apply_changes},
    sheet::{Creature, Life},
    srd::same,
};

impl Encounter {
    /// Applies one event to the state.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Joined { participant } => self.joined(participant),
            Event::Left { participant } => self.left(participant),
            Event::Initiative { participant, initiative } => {
                self.with(participant, |p| p.initiative = *initiative);
            }
            Event::TurnStarted { participant, round } => {
                self.turn_started(participant, *round);
                self.count_down(Moment::Start, participant);
            }
            Event::NobodyLeft => {
                self.current = None;
                self.provoked.clear();
            }
            Event::TurnEnded { participant, round } => {
                self.with(participant, |p| {
                    p.surprised = false;
                    p.acted_in = p.acted_in.max((*round).min(ROUNDS_MAX));
                });
                self.count_down(Moment::End, participant);
            }
            Event::Spent { participant, cost, attacks_left, cast } => {
                self.with(participant, |p| spent(p, *cost, *attacks_left, *cast));
            }
            Event::Hid { participant, hidden } => self.with(participant, |p| p.hidden = *hidden),
            Event::Took { participant, stance } => self.with(participant, |p| took(p, *stance)),
            Event::Moved { participant, to, cost_ft } => {
                let to = to.filter(|to| self.terrain.holds(*to, 1));
                self.with(participant, |p| {
                    p.position = to.or(p.position);
                    p.economy.movement_used = p.economy.movement_used.saturating_add((*cost_ft).max(0));
                });
            }
            Event::Provoked { by, target, from } => {
                if self.provoked.len() < PARTICIPANTS_MAX {
                    let (by, target) = (by.clone(), target.clone());
                    self.provoked.push(Provocation { by, target, from: *from });
                }
            }
            Event::Attacked { by, target, made, hit } => {
                self.provoked.retain(|p| p.by != *by || p.target != *target);
                self.with(by, |p| {
                    let statistics = &mut p.statistics;
                    statistics.attacks_made = statistics.attacks_made.saturating_add(*made);
                    statistics.attacks_hit = statistics.attacks_hit.saturating_add(*hit);
                });
            }
            Event::Changed { by, change } => self.changed(by.as_deref(), change),
            Event::Lasts { participant, lasting } => self.with(participant, |p| lasts(p, lasting)),
            Event::Overridden { .. } => {}
            Event::Ended { outcome, notes } => {
                self.status = Status::Ended;
                self.outcome = Some(*outcome);
                self.notes = notes.as_deref().map(|n| n.chars().take(NOTES_CHARS_MAX).collect());
            }
        }
    }

    fn with(&mut self, id: &str, change: impl FnOnce(&mut Participant)) {
        if let Some(participant) = self.one_mut(id) {
            change(participant);
        }
    }

    fn joined(&mut self, participant: &Participant) {
        if self.participants.len() >= PARTICIPANTS_MAX || self.at(&participant.id).is_some() {
            return;
        }
        let mut participant = participant.clone();
        let sheet = Arc::make_mut(&mut participant.creature);
        sheet.id.clone_from(&participant.id);
        bound(sheet);
        self.departed.retain(|p| p.id != participant.id);
        self.participants.push(participant);
    }

    fn left(&mut self, id: &str) {
        let Some(at) = self.at(id) else { return };
        let participant = self.participants.remove(at);
        self.provoked.retain(|p| p.by != id && p.target != id);
        self.current = self.current.filter(|current| *current != at).map(|current| current - usize::from(current > at));
        if !participant.is_ephemeral() && self.departed.len() < PARTICIPANTS_MAX {
            self.departed.push(participant);
        }
    }

    fn turn_started(&mut self, id: &str, round: u32) {
        let Some(at) = self.at(id) else { return };
        self.current = Some(at);
        self.round = round.clamp(1, ROUNDS_MAX);
        self.provoked.clear();
        let round = self.round;
        self.with(id, |p| {
            p.economy = super::Economy::default();
            p.acted_in = round;
        });
        self.began_at = self.current().map(|p| p.initiative);
    }

    /// Takes a round off everything whose rounds count down at this moment of somebody's turn.
    fn count_down(&mut self, moment: Moment, turn_of: &str) {
        let clock = self.clock();
        for it in &mut self.participants {
            let is_due = |source: Option<&str>, rounds: Option<i32>| {
                rounds.is_some_and(|rounds| rounds > 0) && clock.counts(&it.id, source) == (moment, turn_of)
            };
            let conditions = it.creature.conditions.iter().map(|c| is_due(c.source.as_deref(), c.rounds_remaining));
            let effects = it.creature.effects.iter().map(|e| is_due(e.source.as_deref(), e.rounds_remaining));
            let (conditions, effects): (Vec<bool>, Vec<bool>) = (conditions.collect(), effects.collect());
            if !conditions.iter().chain(&effects).any(|is_due| *is_due) {
                continue;
            }
            let sheet = Arc::make_mut(&mut it.creature);
            let conditions = sheet.conditions.iter_mut().map(|c| &mut c.rounds_remaining).zip(conditions);
            let effects = sheet.effects.iter_mut().map(|e| &mut e.rounds_remaining).zip(effects);
            for rounds in conditions.chain(effects).filter_map(|(rounds, is_due)| rounds.as_mut().filter(|_| is_due)) {
                *rounds = rounds.saturating_sub(1).max(0);
            }
        }
    }

    /// When rounds count down, as things are.
    pub(super) fn clock(&self) -> Clock {
        Clock(self.participants.iter().filter(|p| p.life() != Life::Dead).map(|p| p.id.clone()).collect())
    }

    fn changed(&mut self, by: Option<&str>, change: &StateChange) {
        let id = change.creature();
        let Some(target) = self.one_mut(id) else { return };
        let sheet = Arc::make_mut(&mut target.creature);
        apply_changes(sheet, std::slice::from_ref(change));
        bound(sheet);
        if let StateChange::AddCondition { condition: crate::sheet::Condition { name, .. }, .. }
        | StateChange::RemoveCondition { name, .. } = change
        {
            target.lasting.retain(|l| !same(&l.condition, name));
        }
        if let StateChange::Damage { total, .. } = change {
            target.statistics.damage_taken = target.statistics.damage_taken.saturating_add((*total).max(0));
        }
        let Some(by) = by.filter(|by| *by != id || matches!(change, StateChange::Heal { .. })) else { return };
        self.with(by, |p| match change {
            StateChange::Damage { total, .. } => {
                p.statistics.damage_dealt = p.statistics.damage_dealt.saturating_add((*total).max(0));
            }
            StateChange::Heal { amount, .. } => {
                p.statistics.healing_done = p.statistics.healing_done.saturating_add((*amount).max(0));
            }
            _ => {}
        });
    }
}

/// A moment of somebody's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    End,
}

/// Who takes turns. A round of something ends when the turn of whoever caused it comes again (SRD 5.1, "The Order of Combat"). What was
/// caused by nobody who takes turns has its rounds counted at the end of its bearer's turns.
pub(super) struct Clock(BTreeSet<String>);

impl Clock {
    /// The moment, and whose turn it is, at which rounds count down.
    pub(super) fn counts<'a>(&self, bearer: &'a str, source: Option<&'a str>) -> (Moment, &'a str) {
        match source.filter(|source| self.0.contains(*source)) {
            Some(source) => (Moment::Start, source),
            None => (Moment::End, bearer),
        }
    }
}

/// Clamps every number that a fight changes to its limits.
pub(super) fn bound(sheet: &mut Creature) {
    sheet.max_hp = sheet.max_hp.max(0);
    sheet.conditions.truncate(LIST_MAX);
    sheet.effects.truncate(LIST_MAX);
    while sheet.turn_flags.len() > LIST_MAX {
        sheet.turn_flags.pop_last();
    }
    sheet.hp = sheet.hp.clamp(0, sheet.max_hp_now().max(0));
    sheet.temp_hp = sheet.temp_hp.max(0);
    sheet.death_saves.successes = sheet.death_saves.successes.clamp(0, 3);
    sheet.death_saves.failures = sheet.death_saves.failures.clamp(0, 3);
    if let Some(dice) = &mut sheet.hit_dice {
        dice.remaining = dice.remaining.clamp(0, dice.max.max(0));
    }
    for slot in sheet.spell_slots.values_mut() {
        slot.remaining = slot.remaining.clamp(0, slot.max.max(0));
    }
    for resource in &mut sheet.resources {
        resource.remaining = resource.remaining.clamp(0, resource.max.max(0));
    }
}

fn spent(it: &mut Participant, cost: Cost, attacks_left: i32, cast: Option<Cast>) {
    match cast {
        Some(Cast::Quick) => it.economy.quick_spell = true,
        Some(Cast::Levelled) => it.economy.levelled_spell = true,
        None => {}
    }
    match cost {
        Cost::Action => it.economy.action = true,
        Cost::BonusAction => it.economy.bonus_action = true,
        Cost::Reaction => (it.economy.reaction, it.economy.readied) = (true, false),
        Cost::Free => {}
    }
    it.economy.attacks_left = attacks_left.max(0);
}

fn took(it: &mut Participant, stance: Stance) {
    let economy = &mut it.economy;
    match stance {
        Stance::Dash => economy.dashes = economy.dashes.saturating_add(1),
        Stance::Disengage => economy.disengaged = true,
        Stance::Dodge => economy.dodging = true,
        Stance::Help => economy.helping = true,
        Stance::Ready => economy.readied = true,
        Stance::DeathSave => economy.death_save = true,
        Stance::Surge => economy.action = false,
    }
}

fn lasts(it: &mut Participant, lasting: &Lasting) {
    it.lasting.retain(|l| !same(&l.condition, &lasting.condition));
    let in_force = it.creature.conditions.iter().any(|c| same(&c.name, &lasting.condition));
    if in_force && it.lasting.len() < LIST_MAX {
        it.lasting.push(lasting.clone());
    }
}
