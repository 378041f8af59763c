//! Attacks with weapons and spells. Resolvers decide them. This module adds what follows from position and turn, and
//! what goes into the log.

use super::Work;
use crate::{
    dice::Dice,
    encounter::{Action, ActionKind, Cost, Event, Lasting, Participant, Position, Refusal, Until},
    resolve::{Outcome, StateChange, resolve_area_spell, resolve_attack},
    sheet::Life,
    srd::{Found, same},
};

/// Spells in the tables whose targets save again at the end of each of their turns (SRD 5.1, "Spell Descriptions").
const SAVED_FROM_EACH_TURN: [&str; 4] = ["Blindness/Deafness", "Hold Person", "Hold Monster", "Sunburst"];

impl Work {
    /// An attack on one target.
    pub(super) fn attack(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let target = self.target(action)?;
        let spell = is_spell(&actor, action);
        self.check_cost(&actor, action)?;
        let price = self.price(&actor, action, !spell)?;
        let provoked_at = self.provoked_at(&actor, &target, action);
        let circumstances = self.state.circumstances(&actor, &target, &action.circumstances, provoked_at);
        let outcome = resolve_attack(&actor.creature, &target.creature, &action.attack, &circumstances, dice)?;
        if outcome.impossible {
            self.tell(outcome);
            return Ok(());
        }
        self.push(price);
        if let Some((made, hit)) = counted(&outcome) {
            let (by, target) = (actor.id.clone(), target.id.clone());
            self.push(Event::Attacked { by, target, made, hit });
        }
        if outcome.reasons.iter().any(|reason| reason.starts_with("Uncanny Dodge")) {
            let attacks_left = target.economy.attacks_left;
            let participant = target.id.clone();
            self.push(Event::Spent { participant, cost: Cost::Reaction, attacks_left, cast: None });
        }
        let effects = outcome.effects.clone();
        self.tell(outcome);
        self.land(Some(&actor.id), &effects, dice)?;
        self.saves_again(&actor, action, &effects);
        self.stop_at(&target, provoked_at);
        Ok(())
    }

    /// Casts a spell on several targets: those in its area, or those it names.
    pub(super) fn area(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let mut targets: Vec<Participant> = Vec::with_capacity(action.target_ids.len());
        for (at, id) in action.target_ids.iter().enumerate() {
            if targets.iter().any(|t| t.id == *id) {
                return Err(Refusal::argument(format!("target_ids/{at}"), format!("\"{id}\" occurs twice")));
            }
            targets.push(self.find("target_ids", id)?);
        }
        self.check_cost(&actor, action)?;
        let price = self.price(&actor, action, false)?;
        let aimed = targets.iter().map(|t| {
            let circumstances = self.state.circumstances(&actor, t, &action.circumstances, None);
            (&*t.creature, circumstances)
        });
        let aimed: Vec<_> = aimed.collect();
        let outcome = resolve_area_spell(&actor.creature, &aimed, &action.attack, dice)?;
        if outcome.impossible {
            self.tell(outcome);
            return Ok(());
        }
        self.push(price);
        for (target, saved) in targets.iter().zip(&outcome.participants) {
            let (by, target) = (actor.id.clone(), target.id.clone());
            self.push(Event::Attacked { by, target, made: 1, hit: u32::from(!saved.success) });
        }
        let effects = outcome.effects.clone();
        self.tell(outcome);
        self.land(Some(&actor.id), &effects, dice)?;
        self.saves_again(&actor, action, &effects);
        Ok(())
    }

    /// Adds the repeated saves of spells that allow them.
    fn saves_again(&mut self, actor: &Participant, action: &Action, effects: &[StateChange]) {
        let named = action.attack.spell_name.as_deref().or(action.attack.weapon.as_deref());
        let Some(Found::One(rule)) = named.map(crate::srd::spell) else { return };
        let Some(ability) = rule.save.filter(|_| SAVED_FROM_EACH_TURN.contains(&rule.name)) else { return };
        let until = Until::Save { dc: actor.creature.spell_save_dc(), ability };
        for change in effects {
            if let StateChange::AddCondition { creature, condition } = change {
                let lasting = Lasting { condition: condition.name.clone(), until: until.clone(), description: None };
                self.push(Event::Lasts { participant: creature.clone(), lasting });
            }
        }
    }

    /// Where the target stood when it provoked this attack.
    fn provoked_at(&self, actor: &Participant, target: &Participant, action: &Action) -> Option<Position> {
        if action.cost != Some(Cost::Reaction) {
            return None;
        }
        self.state.provoked().iter().find(|p| p.by == actor.id && p.target == target.id).map(|p| p.from)
    }

    /// A target that falls while it leaves has not left.
    fn stop_at(&mut self, target: &Participant, provoked_at: Option<Position>) {
        let fell = self.state.participant(&target.id).is_some_and(|t| t.life() != Life::Alive);
        if let Some(from) = provoked_at.filter(|_| fell && target.life() == Life::Alive) {
            self.push(Event::Moved { participant: target.id.clone(), to: Some(from), cost_ft: 0 });
        }
    }
}

/// Whether this casts a spell, which takes the whole action.
pub(super) fn is_spell(actor: &Participant, action: &Action) -> bool {
    let asked = &action.attack;
    let named = |name: &str| {
        let known = actor.creature.spells.iter().any(|s| same(s.name(), name));
        known || (actor.creature.is_npc && matches!(crate::srd::spell(name), Found::One(r) if same(r.name, name)))
    };
    action.action == ActionKind::CastSpell
        || asked.is_spell_attack
        || asked.spell_name.as_deref().is_some_and(|s| !s.trim().is_empty())
        || asked.weapon.as_deref().is_some_and(named)
}

/// How many attacks an outcome contains, and how many hit; `None` if it attacked nobody.
fn counted(outcome: &Outcome) -> Option<(u32, u32)> {
    if outcome.attacks.is_empty() {
        return (outcome.dc_or_ac != "N/A").then(|| (1, u32::from(outcome.success)));
    }
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some((count(outcome.attacks.len()), count(outcome.attacks.iter().filter(|a| a.success).count())))
}
