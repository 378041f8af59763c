//! Movement over the grid, the opportunity attacks that it provokes, and hazards on the way (SRD 5.1, "Movement and
//! Position").

use super::Work;
use crate::{
    dice::Dice,
    encounter::{
        Action, Event, Hazard, Lasting, Participant, Position, Refusal, Until, limits, position::SQUARE_FT, walk,
    },
    resolve::{
        Circumstances, DamageArgs, DamagePart, SaveDamage, SavingThrowArgs, StateChange, apply_damage,
        resolve_saving_throw,
    },
    sheet::{Condition, Life},
    srd::{Ability, DamageDice, OnSave},
};

impl Work {
    /// Moves to a square; as near to somebody or as far away as the movement allows; or, without positions, by a number of
    /// feet.
    pub(super) fn walk(&mut self, action: &Action, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        let wrong = |message: String| Refusal::argument("position", message);
        let to = match action.position.or_else(|| action.path.last().copied()) {
            None => self.square_by(&actor, action)?,
            named => named,
        };
        let Some(to) = to else {
            return self.walk_feet(&actor, action);
        };
        let Some(from) = actor.position.filter(|_| !action.overridden) else {
            if actor.life() != Life::Alive && !action.overridden {
                return Err(Refusal::used_up("movement", format!("{} is down and cannot move", actor.creature.name)));
            }
            return self.put(&actor, to);
        };
        if from == to {
            return Err(wrong("is the current position".to_owned()));
        }
        self.feared(&actor, to)?;
        let steps = walk::way(&self.state, &actor, from, to, &action.path).map_err(wrong)?;
        let needed = steps.iter().fold(0_i32, |sum, s| sum.saturating_add(s.cost_ft));
        affordable(&actor, needed)?;
        let provoked = if actor.economy.disengaged { Vec::new() } else { self.provoked(&actor, from, &steps) };
        self.follow_steps(&actor, &steps, dice)?;
        provoked.into_iter().for_each(|event| self.push(event));
        Ok(())
    }

    /// The destination of a move towards or away from somebody; `None` if the action names nobody, or one of the two has no
    /// position.
    fn square_by(&self, actor: &Participant, action: &Action) -> Result<Option<Position>, Refusal> {
        if action.target_id.is_none() {
            return Ok(None);
        }
        let target = self.target(action)?;
        let wrong = |message: String| Err(Refusal::argument("target_id", message));
        if target.id == actor.id {
            return wrong("is the participant that moves: give somebody else, or a position".to_owned());
        }
        let most = feet_asked(action)?;
        let Some((from, at)) = actor.position.zip(target.position) else { return Ok(None) };
        if from.z != 0 || at.z != 0 {
            return wrong("is not on the ground, or the one who moves is not: give a position".to_owned());
        }
        // A game master's override has no limit.
        let left = if action.overridden { i32::MAX } else { actor.movement_left() };
        if left < SQUARE_FT {
            return Err(Refusal::used_up("movement", format!("{} has no movement left", actor.creature.name)));
        }
        let left = most.map_or(left, |most| left.min(most));
        let to = if action.away {
            walk::away(&self.state, actor, from, &target, left)
        } else {
            walk::towards(&self.state, actor, from, &target, left)
        };
        match to {
            Some(to) => Ok(Some(to)),
            None if action.away => wrong(format!("{} cannot get any farther away from it", actor.creature.name)),
            None if from.squares_to(actor.side(), at, target.side()) <= 1 => {
                wrong(format!("is already next to {}", actor.creature.name))
            }
            None => wrong(format!("{} cannot get any nearer to it with that movement", actor.creature.name)),
        }
    }

    /// Puts a participant on a square, because it had none or a game master overrides.
    fn put(&mut self, actor: &Participant, to: Position) -> Result<(), Refusal> {
        let terrain = &self.state.terrain;
        if !terrain.holds(to, actor.side()) {
            let (width, height) = (terrain.width, terrain.height);
            return Err(Refusal::argument("position", format!("is outside of the grid of {width} by {height}")));
        }
        if to.z == 0 && terrain.blocks(to, actor.side()) {
            return Err(Refusal::argument("position", "is an obstacle"));
        }
        if let Some(other) = walk::who_stands_at(&self.state, actor, to) {
            return Err(Refusal::argument("position", format!("is taken, because {} is there", other.id)));
        }
        self.push(Event::Moved { participant: actor.id.clone(), to: Some(to), cost_ft: 0 });
        Ok(())
    }

    fn walk_feet(&mut self, actor: &Participant, action: &Action) -> Result<(), Refusal> {
        let feet = match (feet_asked(action)?, &action.target_id) {
            (Some(feet), _) => feet,
            // Without positions nobody measures the distance, but the actor must be able to move.
            (None, Some(_)) if actor.movement_left() > 0 || action.overridden => 0,
            (None, Some(_)) => {
                return Err(Refusal::used_up("movement", format!("{} has no movement left", actor.creature.name)));
            }
            (None, None) => return Err(Refusal::missing("position", action.action)),
        };
        let prone = actor.creature.has_condition("prone");
        let needed = if prone { feet.saturating_mul(2) } else { feet };
        if !action.overridden {
            affordable(actor, needed)?;
        }
        self.push(Event::Moved { participant: actor.id.clone(), to: None, cost_ft: needed });
        Ok(())
    }

    /// Stands up, which takes half the speed.
    pub(super) fn stand_up(&mut self, action: &Action) -> Result<(), Refusal> {
        let actor = self.actor(action)?;
        if !actor.creature.conditions.iter().any(|c| crate::srd::same(&c.name, "prone")) {
            self.cannot(&format!("{} is not prone", actor.creature.name));
            return Ok(());
        }
        let cost_ft = actor.speed_now() / 2;
        if !action.overridden {
            affordable(&actor, cost_ft.max(1))?;
        }
        self.push(Event::Moved { participant: actor.id.clone(), to: None, cost_ft });
        let change = StateChange::RemoveCondition { creature: actor.id, name: "prone".to_owned() };
        self.push(Event::Changed { by: None, change });
        Ok(())
    }

    /// A frightened creature cannot move closer to the source of its fear (SRD 5.1, "Frightened").
    fn feared(&self, actor: &Participant, to: Position) -> Result<(), Refusal> {
        let fears = actor.creature.condition_rules();
        let source = fears.iter().find(|(rule, _)| rule.name == "frightened").and_then(|(_, source)| *source);
        let Some(source) = source else { return Ok(()) };
        let feared = self.state.participants().iter().find(|p| p.creature.is_called(source));
        let Some((at, from)) = feared.and_then(|f| f.position).zip(actor.position) else { return Ok(()) };
        if to.squares_to(1, at, 1) < from.squares_to(1, at, 1) {
            return Err(Refusal::argument(
                "position",
                format!("is closer to {source}, and {} is frightened of that creature", actor.creature.name),
            ));
        }
        Ok(())
    }

    /// The opportunity attacks that a path provokes: each attacker once, with the square that was left.
    fn provoked(&self, actor: &Participant, from: Position, steps: &[walk::Step]) -> Vec<Event> {
        let mut events = Vec::new();
        let unseen = actor.creature.has_condition("invisible");
        for it in self.state.participants() {
            let watches = it.is_enemy != actor.is_enemy && it.can_react() && !it.creature.has_condition("blinded");
            let Some(own) = it.position.filter(|_| watches && !unseen) else { continue };
            let reaches =
                |at: Position| own.squares_to(it.side(), at, actor.side()).saturating_mul(SQUARE_FT) <= it.reach_ft();
            let mut at = from;
            for step in steps {
                if reaches(at) && !reaches(step.to) {
                    let (by, target) = (it.id.clone(), actor.id.clone());
                    events.push(Event::Provoked { by, target, from: at });
                    break;
                }
                at = step.to;
            }
        }
        events
    }

    /// Follows the path. Somebody who is stopped by a hazard stays there.
    fn follow_steps(&mut self, actor: &Participant, steps: &[walk::Step], dice: &mut dyn Dice) -> Result<(), Refusal> {
        let terrain = self.state.terrain.clone();
        let mut caught = Vec::new();
        let mut cost_ft = 0_i32;
        let last = steps.len().saturating_sub(1);
        for (index, step) in steps.iter().enumerate() {
            cost_ft = cost_ft.saturating_add(step.cost_ft);
            let danger = terrain.hazards_at(step.to, actor.side()).any(|(at, _)| !caught.contains(&at));
            if !danger && index != last {
                continue;
            }
            self.push(Event::Moved { participant: actor.id.clone(), to: Some(step.to), cost_ft });
            cost_ft = 0;
            self.caught(&actor.id, &mut caught, dice)?;
            if self.state.participant(&actor.id).is_none_or(|p| p.speed_now() == 0) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Applies the hazards under a participant, each once.
    pub(super) fn caught(&mut self, id: &str, known: &mut Vec<usize>, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let terrain = self.state.terrain.clone();
        let Some(it) = self.state.participant(id) else { return Ok(()) };
        let Some(at) = it.position else { return Ok(()) };
        for (index, hazard) in terrain.hazards_at(at, it.side()).collect::<Vec<_>>() {
            if !known.contains(&index) {
                known.push(index);
                self.hazard(id, hazard, dice)?;
            }
        }
        Ok(())
    }

    fn hazard(&mut self, id: &str, hazard: &Hazard, dice: &mut dyn Dice) -> Result<(), Refusal> {
        let Some(it) = self.state.participant(id).cloned().filter(|p| p.life() != Life::Dead) else { return Ok(()) };
        let damage_type = hazard.damage_type.clone().unwrap_or_default();
        let saved = match (hazard.dc, &hazard.damage) {
            (Some(dc), damage) => {
                let damage = damage.clone().map(|dice| SaveDamage { dice, damage_type, on_save: OnSave::Half });
                let ability = hazard.save_ability.unwrap_or(Ability::Dexterity).name().to_owned();
                let args = SavingThrowArgs { ability, dc, source: Some(hazard.kind.clone()), damage };
                let outcome = resolve_saving_throw(&it.creature, &args, &Circumstances::default(), dice)?;
                let (saved, effects) = (outcome.success, outcome.effects.clone());
                self.tell(outcome);
                self.land(None, &effects, dice)?;
                saved
            }
            (None, Some(formula)) => {
                let amount = rolled(formula, dice)?;
                let parts = vec![DamagePart { amount, damage_type: typed(formula, damage_type) }];
                let outcome = apply_damage(&it.creature, &DamageArgs { parts, ..DamageArgs::default() })?;
                let effects = outcome.effects.clone();
                self.tell(outcome);
                self.land(None, &effects, dice)?;
                false
            }
            (None, None) => false,
        };
        let condition = hazard.condition.as_deref().filter(|c| !saved && !it.creature.is_immune_to_condition(c));
        if let Some(name) = condition {
            let condition =
                Condition { name: name.to_owned(), source: Some(hazard.kind.clone()), ..Condition::default() };
            let change = StateChange::AddCondition { creature: id.to_owned(), condition };
            self.push(Event::Changed { by: None, change });
            let lasting = Lasting { condition: name.to_owned(), until: Until::Dispelled, description: None };
            self.push(Event::Lasts { participant: id.to_owned(), lasting });
            self.follow(id);
        }
        Ok(())
    }
}

/// Checks that enough movement is left.
fn affordable(actor: &Participant, needed_ft: i32) -> Result<(), Refusal> {
    let left = actor.movement_left();
    if needed_ft <= left {
        return Ok(());
    }
    let message = format!("{} needs {needed_ft} feet of movement but has {left} left", actor.creature.name);
    Err(Refusal::used_up("movement", message))
}

/// How many feet the move asks for.
fn feet_asked(action: &Action) -> Result<Option<i32>, Refusal> {
    match action.amount {
        Some(feet) if !(1..=limits::AMOUNT_MAX).contains(&feet) => {
            Err(Refusal::argument("amount", "must be at least 1 foot"))
        }
        feet => Ok(feet),
    }
}

/// Rolls a sum of dice.
fn rolled(formula: &str, dice: &mut dyn Dice) -> Result<i32, Refusal> {
    let Some(sum) = DamageDice::parse(formula) else { return Ok(0) };
    let mut total = sum.flat;
    for pool in &sum.pools {
        for _ in 0..pool.count {
            total = total.saturating_add(i32::try_from(dice.roll(pool.faces)?).unwrap_or(i32::MAX));
        }
    }
    Ok(total.max(0))
}

/// The damage type in the sum of dice, or else the given one.
fn typed(formula: &str, given: String) -> String {
    DamageDice::parse(formula).and_then(|sum| sum.damage_type).map_or(given, str::to_owned)
}
