//! What follows from changes: concentration checks, ended concentration, and released grapples.

use super::Work;
use crate::{
    dice::Dice,
    encounter::{Action, Encounter, Event, Participant, Refusal, Until},
    resolve::{Circumstances, StateChange, resolve_concentration},
    sheet::{KnownSpell, Life},
    srd::{SPELLS, same},
};

impl Work {
    /// Makes the changes that a resolver requires, in order, then those that follow from them.
    pub(super) fn land(
        &mut self,
        by: Option<&str>,
        changes: &[StateChange],
        dice: &mut dyn Dice,
    ) -> Result<(), Refusal> {
        let mut checks = Vec::new();
        for change in changes {
            match change {
                StateChange::ConcentrationCheck { creature, damage, .. } => checks.push((creature.as_str(), *damage)),
                StateChange::EndConcentration { creature, .. } => self.stop_concentrating(creature),
                StateChange::StartConcentration { creature, .. } => {
                    self.stop_concentrating(creature);
                    self.push(Event::Changed { by: by.map(str::to_owned), change: change.clone() });
                }
                _ => self.push(Event::Changed { by: by.map(str::to_owned), change: change.clone() }),
            }
        }
        for (id, damage) in checks {
            let Some(it) = self.state.participant(id).cloned() else { continue };
            if it.creature.concentration.is_none() {
                continue;
            }
            let outcome = resolve_concentration(&it.creature, damage, &Circumstances::default(), dice)?;
            let effects = outcome.effects.clone();
            self.tell(outcome);
            self.land(None, &effects, dice)?;
        }
        let mut touched: Vec<&str> = changes.iter().map(StateChange::creature).collect();
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|id| self.follow(id));
        Ok(())
    }

    /// A creature that cannot act loses its concentration and releases what it holds.
    pub(super) fn follow(&mut self, id: &str) {
        let Some(it) = self.state.participant(id) else { return };
        if it.life() == Life::Alive && !it.creature.is_incapacitated() {
            return;
        }
        self.let_go(id);
    }

    /// Ends a creature's concentration and releases what it holds.
    pub(super) fn let_go(&mut self, id: &str) {
        self.stop_concentrating(id);
        for (held, name) in held_by(&self.state, id) {
            self.push(Event::Changed { by: None, change: StateChange::RemoveCondition { creature: held, name } });
        }
    }

    /// The changes that free a creature of what others do to it as long as they hold it or concentrate.
    pub(super) fn held_on(&self, id: &str) -> Vec<StateChange> {
        let casters = self.state.participants().iter().filter(|p| p.id != id);
        let of_spells = casters.flat_map(|caster| {
            let on = caster.creature.concentration.as_ref();
            on.map(|on| of_spell(&self.state, caster, &on.spell)).unwrap_or_default()
        });
        let holders = self.state.participants().iter().filter(|p| p.id != id);
        let grapples = holders.flat_map(|holder| held_by(&self.state, &holder.id));
        let grapples = grapples.map(|(creature, name)| StateChange::RemoveCondition { creature, name });
        of_spells.chain(grapples).filter(|change| change.creature() == id).collect()
    }

    /// Gives up concentration.
    pub(super) fn end_concentration(&mut self, action: &Action) -> Result<(), Refusal> {
        let it = match (&action.target_id, &action.participant_id) {
            (None, None) => self.state.current().cloned().ok_or(Refusal::NotYourTurn { current: None })?,
            _ => self.target_or_self(action)?,
        };
        let acts = action.participant_id.as_deref().or(self.state.current().map(|p| p.id.as_str()));
        if acts != Some(it.id.as_str()) && !action.overridden {
            return Err(Refusal::argument("target_id", "a participant can only give up its own concentration"));
        }
        if it.creature.concentration.is_none() {
            self.cannot(&format!("{} is not concentrating", it.creature.name));
            return Ok(());
        }
        self.stop_concentrating(&it.id);
        Ok(())
    }

    /// Ends concentration, and what the spell did to everybody.
    fn stop_concentrating(&mut self, id: &str) {
        let Some(caster) = self.state.participant(id).cloned() else { return };
        let Some(on) = &caster.creature.concentration else { return };
        let change = StateChange::EndConcentration { creature: id.to_owned(), spell: on.spell.clone() };
        self.push(Event::Changed { by: None, change });
        for change in of_spell(&self.state, &caster, &on.spell) {
            self.push(Event::Changed { by: None, change });
        }
    }
}

/// Whom a creature holds, with the names of the conditions.
fn held_by(state: &Encounter, id: &str) -> Vec<(String, String)> {
    let held = state.participants().iter().flat_map(|p| {
        let grappled = |c: &&crate::sheet::Condition| same(&c.name, "grappled") && c.source.as_deref() == Some(id);
        p.creature.conditions.iter().filter(grappled).map(|c| (p.id.clone(), c.name.clone()))
    });
    held.collect()
}

/// Everything that ends with a spell: what lasts as long as its caster concentrates, and what the tables say it puts on
/// others.
fn of_spell(state: &Encounter, caster: &Participant, spell: &str) -> Vec<StateChange> {
    let puts = puts(caster, spell);
    let from = |source: Option<&str>, name: &str| {
        source.is_some_and(|s| caster.creature.is_called(s)) && puts.iter().any(|p| same(p, name))
    };
    let mut ended = Vec::new();
    for it in state.participants() {
        for condition in &it.creature.conditions {
            let bound = it
                .lasts(&condition.name)
                .is_some_and(|l| matches!(&l.until, Until::Concentration { by } if *by == caster.id));
            if bound || from(condition.source.as_deref(), &condition.name) {
                let (creature, name) = (it.id.clone(), condition.name.clone());
                ended.push(StateChange::RemoveCondition { creature, name });
            }
        }
        for effect in it.creature.effects.iter().filter(|e| from(e.source.as_deref(), &e.name)) {
            ended.push(StateChange::RemoveEffect { creature: it.id.clone(), name: effect.name.clone() });
        }
    }
    ended
}

/// The names of conditions and effects that a spell puts on others: its own name, and those in the tables and on the
/// sheet.
fn puts(caster: &Participant, spell: &str) -> Vec<String> {
    let table = SPELLS.iter().filter(|s| same(s.name, spell));
    let mut names: Vec<String> =
        table.flat_map(|s| s.effect.into_iter().chain(s.condition)).map(str::to_owned).collect();
    for known in &caster.creature.spells {
        if let KnownSpell::Own(own) = known
            && same(&own.name, spell)
        {
            names.extend(own.effect.iter().chain(&own.condition).cloned());
        }
    }
    names.push(spell.to_owned());
    names
}
