//! Whether an attack is possible, and what gives its roll advantage or disadvantage.

use super::arm::Arm;
use crate::{
    resolve::{
        Automatic, Circumstances, Cover, StateChange,
        d20::{BonusDie, D20Test},
        error::Stop,
        harm,
    },
    sheet::{Creature, Life, Range},
    srd::{Ability, Advantage, same},
};

/// What the rules of advantage need to know of an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Whether it is shot, thrown, or a ranged spell.
    pub(crate) ranged: bool,
    /// Whether it is made with a weapon or unarmed, not with a spell.
    pub(crate) weapon: bool,
    /// The ability that it uses.
    pub(crate) ability: Option<Ability>,
    /// Its range, if it is a ranged attack.
    pub(crate) range: Option<Range>,
}

impl Shape {
    /// Whether attacker and target are adjacent. If the distance is unknown, only for melee.
    pub(crate) fn is_near(self, circumstances: &Circumstances) -> bool {
        circumstances.context.distance_ft.map_or(!self.ranged, |d| d <= 5)
    }

    fn is_melee_with_strength(self) -> bool {
        self.weapon && !self.ranged && self.ability == Some(Ability::Strength)
    }
}

/// Checks that the attacker can act and can attack this target.
pub(crate) fn able(actor: &Creature, target: &Creature, circumstances: &Circumstances) -> Result<(), Stop> {
    if actor.life() == Life::Dead {
        return Err(Stop::Impossible(format!("{} is dead", actor.name)));
    }
    let conditions = actor.condition_rules();
    if let Some((rule, _)) = conditions.iter().find(|(rule, _)| rule.incapacitated) {
        return Err(Stop::Impossible(format!("{} is {} and cannot act", actor.name, rule.name)));
    }
    let charmer = conditions.iter().find(|(rule, _)| rule.name == "charmed").and_then(|(_, source)| *source);
    if charmer.is_some_and(|by| target.is_called(by)) {
        return Err(Stop::Impossible(format!("{} is charmed by {} and cannot attack it", actor.name, target.name)));
    }
    if circumstances.cover == Cover::Total {
        return Err(Stop::Impossible(format!("{} has total cover", target.name)));
    }
    Ok(())
}

/// Checks that the attack reaches the target.
pub(crate) fn in_reach(arm: &Arm<'_>, circumstances: &Circumstances) -> Result<(), Stop> {
    let Some(distance) = circumstances.context.distance_ft else { return Ok(()) };
    if !arm.ranged {
        if distance > arm.reach {
            let reason = format!("{distance} feet are beyond the reach of {} ({} feet)", arm.name, arm.reach);
            return Err(Stop::Impossible(reason));
        }
        return Ok(());
    }
    let Some(range) = arm.range else { return Ok(()) };
    let long = range.long.unwrap_or(range.normal);
    if distance > long {
        let reason = format!("{distance} feet are beyond the long range of {} ({long} feet)", arm.name);
        return Err(Stop::Impossible(reason));
    }
    Ok(())
}

/// Adds all sources of advantage and disadvantage, and bonus dice.
pub(crate) fn lean(
    test: &mut D20Test,
    actor: &Creature,
    target: &Creature,
    shape: Shape,
    circumstances: &Circumstances,
) {
    of_actor(test, actor, shape, circumstances);
    of_target(test, actor, target, shape, circumstances);
    let context = &circumstances.context;
    if context.attacker_unseen {
        test.advantage_for("the target does not see the attacker");
    }
    if context.target_unseen {
        test.disadvantage("the attacker does not see the target");
    }
    if shape.ranged {
        let target_close = context.distance_ft.is_some_and(|d| d <= 5)
            && !same(&target.disposition, "friendly")
            && target.life() == Life::Alive
            && !target.is_incapacitated();
        if context.hostile_adjacent || target_close {
            test.disadvantage("a hostile creature is within 5 feet");
        }
        if let (Some(range), Some(distance)) = (shape.range, context.distance_ft)
            && distance > range.normal
        {
            test.disadvantage("beyond normal range");
        }
    }
    test.lean(circumstances.advantage, || "as requested".into());
}

fn of_actor(test: &mut D20Test, actor: &Creature, shape: Shape, circumstances: &Circumstances) {
    for (rule, _) in actor.condition_rules() {
        if !rule.needs_source_in_sight || circumstances.context.fear_source_visible {
            test.lean(rule.attacks, || format!("the attacker is {}", rule.name).into());
        }
    }
    if actor.exhaustion() >= 3 {
        test.disadvantage("the attacker is exhausted");
    }
    let bodily = matches!(shape.ability, Some(Ability::Strength | Ability::Dexterity));
    if let Some(worn) = actor.untrained_armor().filter(|_| bodily) {
        test.lean(Advantage::Disadvantage, || format!("not proficient with {worn}").into());
    }
    for rule in actor.effect_rules() {
        if rule.name == "Reckless Attack" && !shape.is_melee_with_strength() {
            continue;
        }
        if rule.attacks != Advantage::None {
            test.lean(rule.attacks, || rule.name.into());
            if rule.once {
                let name = rule.name.to_owned();
                test.spent.push(StateChange::RemoveEffect { creature: actor.key().to_owned(), name });
            }
        }
        if rule.attack_die != 0 {
            test.bonus_dice.push(BonusDie { label: rule.name, faces: rule.attack_die });
        }
    }
}

fn of_target(test: &mut D20Test, actor: &Creature, target: &Creature, shape: Shape, circumstances: &Circumstances) {
    let near = shape.is_near(circumstances);
    let outlined = target.has_effect("Faerie Fire");
    let conditions = target.condition_rules();
    for (rule, _) in &conditions {
        if rule.name == "invisible" && outlined {
            continue;
        }
        let lean = if near { rule.attacks_against } else { rule.attacks_against_from_afar };
        test.lean(lean, || format!("the target is {}", rule.name).into());
    }
    let context = &circumstances.context;
    let sees_target = !context.target_unseen && !actor.has_condition("blinded");
    let sees_attacker = !context.attacker_unseen && !actor.has_condition("invisible");
    let free = conditions.iter().all(|(rule, _)| !rule.incapacitated && !rule.speed_zero);
    for rule in target.effect_rules() {
        let works = match rule.name {
            "Faerie Fire" => sees_target,
            "Dodge" => sees_attacker && free,
            _ => true,
        };
        if works && rule.attacks_against != Advantage::None {
            test.lean(rule.attacks_against, || format!("{} on the target", rule.name).into());
            if rule.once {
                let name = rule.name.to_owned();
                test.spent.push(StateChange::RemoveEffect { creature: target.key().to_owned(), name });
            }
        }
    }
}

/// Adds disadvantages of the weapon itself: its weight, its length, or water.
pub(crate) fn lean_of_arm(test: &mut D20Test, actor: &Creature, arm: &Arm<'_>, circumstances: &Circumstances) {
    if arm.has("heavy") && actor.is_small() && arm.npc_bonus.is_none() {
        test.disadvantage("a heavy weapon and a small wielder");
    }
    let context = &circumstances.context;
    let name = arm.base.map_or("", |b| b.name);
    if name == "lance" && context.distance_ft.is_some_and(|d| d <= 5) {
        test.disadvantage("a lance within 5 feet");
    }
    if !context.underwater || !arm.is_weapon {
        return;
    }
    if !arm.ranged {
        if !["dagger", "javelin", "shortsword", "spear", "trident"].contains(&name) {
            test.disadvantage("under water");
        }
        return;
    }
    let beyond = arm.range.zip(context.distance_ft).is_some_and(|(range, distance)| distance > range.normal);
    if beyond {
        test.settle(Automatic::Failure, "automatic miss: beyond normal range under water");
    }
    let steady = name.ends_with("crossbow") || ["net", "javelin", "spear", "trident", "dart"].contains(&name);
    if !steady {
        test.disadvantage("under water");
    }
}

/// Whether a target is so helpless that a hit from an adjacent attacker is critical.
pub(crate) fn helpless(target: &Creature) -> bool {
    target.condition_rules().iter().any(|(rule, _)| rule.critical_when_hit_nearby)
}

/// Whether Rage adds its damage.
pub(crate) fn rages(actor: &Creature) -> bool {
    actor.effect_rules().any(|rule| rule.name == "Rage") && harm::rage_works(actor)
}
