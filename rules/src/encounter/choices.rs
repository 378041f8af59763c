//! What a participant can do now, so that a page can offer it.

use serde::Serialize;

use super::{Action, ActionKind, Cost, Encounter, Participant, Refusal, Status};
use crate::{
    dice::{Dice, OutOfDice},
    resolve::{Aim, aim_of, sheet_attacks},
    sheet::Life,
    srd::{CastingTime, same},
};

/// The resource that gives another action.
pub(super) const ACTION_SURGE: &str = "Action Surge";
/// The resource that heals (SRD 5.1, "Second Wind").
pub(super) const SECOND_WIND: &str = "Second Wind";
/// The most weapons, spells and targets that are tried: fewer than 310 tries in all.
const WEAPONS_MAX: usize = 8;
const SPELLS_MAX: usize = 12;
const TARGETS_MAX: usize = 12;

/// An action that the rules would accept now. As JSON it is a request to the encounter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What is done.
    pub action: ActionKind,
    /// Who acts.
    pub participant_id: String,
    /// Who is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,
    /// The weapon or the attack of a stat block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weapon: Option<String>,
    /// The spell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spell_name: Option<String>,
    /// The resource that is spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// What it costs, if it is a reaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Choice {
    fn new(action: ActionKind, actor: &Participant) -> Self {
        Self {
            action,
            participant_id: actor.id.clone(),
            target_id: None,
            weapon: None,
            spell_name: None,
            resource: None,
            cost: None,
        }
    }

    fn on(self, target: &Participant) -> Self {
        Self { target_id: Some(target.id.clone()), ..self }
    }

    /// The choice as a request.
    #[must_use]
    pub fn request(&self) -> Action {
        let mut action = Action::new(self.action);
        action.participant_id = Some(self.participant_id.clone());
        action.target_id.clone_from(&self.target_id);
        action.attack.weapon.clone_from(&self.weapon);
        action.attack.spell_name.clone_from(&self.spell_name);
        action.resource.clone_from(&self.resource);
        action.cost = self.cost;
        action
    }
}

/// Dice for a try. What is accepted does not depend on what they show.
struct Untold;

impl Dice for Untold {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        Ok(faces)
    }
}

/// Tries choices on a fight and keeps those that the rules accept.
struct Tries<'a> {
    fight: &'a Encounter,
    accepted: Vec<Choice>,
}

impl Tries<'_> {
    /// Tries a choice. False if a choice like it cannot be accepted for any other target.
    fn offer(&mut self, choice: Choice) -> bool {
        match self.fight.act(&choice.request(), &mut Untold) {
            Ok(decision) if !decision.events.is_empty() => self.accepted.push(choice),
            Err(Refusal::NoActionLeft { .. } | Refusal::NotYourTurn { .. }) => return false,
            _ => {}
        }
        true
    }

    fn offer_for_each(&mut self, choice: &Choice, targets: &[&Participant]) {
        for target in targets.iter().take(TARGETS_MAX) {
            if !self.offer(choice.clone().on(target)) {
                return;
            }
        }
    }
}

impl Encounter {
    /// The usual actions that a participant can do now: attacks, spells, and the actions of SRD 5.1, "Actions in Combat",
    /// that need no further words. Outside of the own turn only reactions. Each is tried, so that this module does not repeat
    /// what the rules decide.
    ///
    /// Only participants that `knows` accepts are targets, also those who are down; the dead are not. Manoeuvres and steps need a foe who
    /// stands.
    #[must_use]
    pub fn choices(&self, actor: &str, knows: impl Fn(&Participant) -> bool) -> Vec<Choice> {
        let Some(actor) = self.participant(actor).filter(|_| self.status() == Status::Active) else {
            return Vec::new();
        };
        let all = self.turn_order();
        let known = || all.iter().copied().filter(|p| p.life() != Life::Dead && knows(p));
        let in_turn = self.current().is_some_and(|current| current.id == actor.id);
        let provoked = |foe: &Participant| self.provoked().iter().any(|p| p.by == actor.id && p.target == foe.id);
        let mut foes: Vec<&Participant> = known()
            .filter(|p| p.is_enemy != actor.is_enemy)
            .filter(|p| in_turn || actor.economy.readied || provoked(p))
            .collect();
        foes.sort_by_key(|p| p.life() != Life::Alive);
        let standing: Vec<&Participant> = foes.iter().copied().filter(|p| p.life() == Life::Alive).collect();
        let friends: Vec<&Participant> = known().filter(|p| p.is_enemy == actor.is_enemy).collect();
        let others: Vec<&Participant> =
            friends.iter().copied().filter(|p| p.id != actor.id && p.life() == Life::Alive).collect();
        let hurt: Vec<&Participant> =
            friends.iter().copied().filter(|p| p.creature.hp < p.creature.max_hp_now()).collect();
        let mut tries = Tries { fight: self, accepted: Vec::new() };
        let cost = (!in_turn).then_some(Cost::Reaction);
        let plain = |kind| Choice { cost, ..Choice::new(kind, actor) };
        if in_turn {
            tries.offer(plain(ActionKind::AdvanceTurn));
            for kind in [
                ActionKind::DeathSave,
                ActionKind::StandUp,
                ActionKind::Escape,
                ActionKind::Dodge,
                ActionKind::Dash,
                ActionKind::Disengage,
                ActionKind::EndConcentration,
            ] {
                tries.offer(plain(kind));
            }
            // Another action, for whoever has none left (SRD 5.1, "Action Surge").
            let pool = |name| actor.creature.resources.iter().find(|pool| same(&pool.name, name) && pool.remaining > 0);
            let has_acted = actor.economy.action && actor.economy.attacks_left == 0;
            let is_hurt = actor.creature.hp < actor.creature.max_hp_now();
            let pools = [pool(ACTION_SURGE).filter(|_| has_acted), pool(SECOND_WIND).filter(|_| is_hurt)];
            for pool in pools.into_iter().flatten() {
                tries.offer(Choice { resource: Some(pool.name.clone()), ..plain(ActionKind::UseResource) });
            }
        }
        // An opportunity attack is one in melee (SRD 5.1, "Opportunity Attacks").
        let is_free = in_turn || actor.economy.readied;
        for weapon in weapons(actor, is_free) {
            tries.offer_for_each(&Choice { weapon: Some(weapon), ..plain(ActionKind::Attack) }, &foes);
        }
        for spell in actor.creature.spells.iter().take(SPELLS_MAX) {
            let choice = Choice { spell_name: Some(spell.name().to_owned()), ..plain(ActionKind::CastSpell) };
            let cost = (CastingTime::of(spell.name()) == CastingTime::Reaction).then_some(Cost::Reaction);
            let choice = Choice { cost: choice.cost.or(cost), ..choice };
            match aim_of(&actor.creature, spell.name()) {
                Some(Aim::Foes) if !is_free => {}
                Some(Aim::Foes) => tries.offer_for_each(&choice, &foes),
                Some(Aim::Hurt) => tries.offer_for_each(&choice, &hurt),
                Some(Aim::Friends) => tries.offer_for_each(&choice, &friends),
                Some(Aim::Caster) => tries.offer_for_each(&choice, &[actor]),
                None => {}
            }
        }
        if !in_turn {
            return tries.accepted;
        }
        tries.offer_for_each(&plain(ActionKind::Help), &others);
        tries.offer_for_each(&plain(ActionKind::Grapple), &standing);
        tries.offer_for_each(&plain(ActionKind::Shove), &standing);
        if actor.position.is_some() {
            tries.offer_for_each(&plain(ActionKind::Move), &standing);
        }
        tries.accepted
    }
}

/// The names of the attacks on the sheet, each once; an unarmed strike if there is none. Without `ranged`, only those in melee.
fn weapons(actor: &Participant, ranged: bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for attack in sheet_attacks(&actor.creature) {
        if attack.problem.is_none()
            && (ranged || attack.reach_ft > 0)
            && !names.iter().any(|name| same(name, &attack.name))
        {
            names.push(attack.name);
        }
    }
    if names.is_empty() {
        names.push("Unarmed Strike".to_owned());
    }
    names.truncate(WEAPONS_MAX);
    names
}
