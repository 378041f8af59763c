//! Spells: which spell is meant, which slot it takes, and what it does (SRD 5.1, "Spellcasting").
//!
//! - `casting`: the spell's numbers at this caster's level and with this slot; `slot`: the slot.
//! - `attack`: spell attacks and darts; `save`: spells with a saving throw; `area`: the same for several targets;
//!   `afflict`: effects and conditions.

mod afflict;
mod area;
mod attack;
mod casting;
mod save;
mod slot;

use super::{
    AttackArgs, Circumstances, Outcome, StateChange,
    attack::{able, custom_rows},
    error::Stop,
    heal, no_check,
};
use crate::{dice::Dice, sheet::Creature, srd::SpellKind};
use afflict::afflict;
pub use area::resolve_area_spell;
use casting::{Casting, FoundSpell};

/// Casts a spell at one target.
pub(crate) fn cast(
    actor: &Creature,
    target: &Creature,
    name: &str,
    args: &AttackArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let casting = match casting::find_spell(actor, name)? {
        FoundSpell::Casting(casting) => *casting,
        FoundSpell::OnlyName(name) => return Ok(unknown(actor, &name, args.slot_level)),
    };
    let harmful = !matches!(casting.kind, SpellKind::Healing | SpellKind::Effect);
    if harmful {
        able(actor, target, circumstances)?;
    } else {
        able(actor, actor, circumstances)?;
    }
    may_cast(actor)?;
    reaches(actor, target, &casting, circumstances).map_err(Stop::Impossible)?;
    if casting.kind == SpellKind::Healing {
        heal::alive(target)?;
    }
    let slot = slot::choose(actor, &casting.name, casting.level, args.slot_level)?;
    let mut casting = casting.with_slot(actor, slot.level);
    let mut reasons = slot.reasons;
    let kind = casting.rows.first().map(|r| r.damage_type.clone()).unwrap_or_default();
    let extra = custom_rows(actor, &args.extra_damage_sources, &kind, &mut reasons);
    casting.extra = extra;
    let mut outcome = match casting.kind {
        SpellKind::Ranged | SpellKind::Melee => attack::volley(actor, target, &casting, circumstances, dice)?,
        SpellKind::Automatic => attack::darts(actor, target, &casting, circumstances, dice)?,
        SpellKind::Save => save::save(actor, target, &casting, circumstances, dice)?,
        SpellKind::Healing => {
            let mut outcome = Outcome::without_roll(casting.name.clone(), &[actor]);
            outcome.with(target);
            heal::heal(&mut outcome, target, &casting.rows, dice)?;
            outcome
        }
        SpellKind::Effect => effect(actor, target, &casting),
    };
    outcome.reasons.splice(0..0, reasons);
    pay(actor, &casting, slot.spends, &mut outcome);
    Ok(outcome.finished())
}

/// At whom a spell is usually cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Its caster's foes.
    Foes,
    /// Friends who have lost hit points.
    Hurt,
    /// Friends and the caster.
    Friends,
    /// Only the caster.
    Caster,
}

/// At whom the spell is usually cast; `None` if the caster does not know it, or there are no numbers for it.
#[must_use]
pub fn aim_of(actor: &Creature, name: &str) -> Option<Aim> {
    let FoundSpell::Casting(casting) = casting::find_spell(actor, name).ok()? else { return None };
    Some(match casting.kind {
        SpellKind::Healing => Aim::Hurt,
        SpellKind::Effect if casting.on_self => Aim::Caster,
        SpellKind::Effect if casting.effect.as_deref() != Some("Hunter's Mark") => Aim::Friends,
        _ => Aim::Foes,
    })
}

/// The numbers of a spell that the caster knows. Fails if only its name is known.
fn known_casting(actor: &Creature, name: &str) -> Result<Casting, Stop> {
    match casting::find_spell(actor, name)? {
        FoundSpell::Casting(casting) => Ok(*casting),
        FoundSpell::OnlyName(name) => {
            Err(Stop::Impossible(format!("the sheet and the tables have no numbers for {name}")))
        }
    }
}

/// Checks that the caster is not raging, and is trained in its armor.
fn may_cast(actor: &Creature) -> Result<(), Stop> {
    if actor.has_effect("Rage") {
        return Err(Stop::Impossible(format!("{} is raging and cannot cast spells", actor.name)));
    }
    if let Some(worn) = actor.untrained_armor() {
        return Err(Stop::Impossible(format!("{} cannot cast spells in {worn} without proficiency", actor.name)));
    }
    Ok(())
}

/// Checks that a spell reaches a target: it is close enough, and visible if it must be seen (SRD 5.1, "Targets").
fn reaches(
    actor: &Creature,
    target: &Creature,
    casting: &Casting,
    circumstances: &Circumstances,
) -> Result<(), String> {
    let context = &circumstances.context;
    // The area's origin can be as far away as the range.
    let reach = casting.range_ft.saturating_add(casting.area_ft.unwrap_or(0));
    if let Some(distance) = context.distance_ft.filter(|d| casting.range_ft > 0 && *d > reach) {
        let name = &target.name;
        return Err(format!("{name} is {distance} feet away, beyond the reach of {} ({reach} feet)", casting.name));
    }
    let hidden = target.has_condition("invisible") && !target.has_effect("Faerie Fire");
    let unseen = context.target_unseen || hidden || actor.has_condition("blinded");
    if casting.sight && unseen && actor.key() != target.key() {
        return Err(format!("{} does not see {}, but {} requires that", actor.name, target.name, casting.name));
    }
    Ok(())
}

/// Casts a spell of which only the name is known. Nothing is rolled, but it may use a slot.
fn unknown(actor: &Creature, name: &str, slot_level: Option<i32>) -> Outcome {
    let mut outcome = no_check(&format!("{name} is cast, but the sheet and the tables have no numbers to resolve it"));
    if let Some(level) = slot_level {
        if actor.slots_left(level) <= 0 {
            return super::impossible(&format!("{} has no slot of level {level} left", actor.name));
        }
        outcome.effects.push(StateChange::SpendSlot { creature: actor.key().to_owned(), level });
    }
    outcome
}

/// Casts a spell that puts an effect or a condition on its target.
fn effect(actor: &Creature, target: &Creature, casting: &Casting) -> Outcome {
    let mut outcome = Outcome::without_roll(casting.name.clone(), &[actor]);
    // Spells with the range "self" always affect the caster.
    let target = if casting.on_self { actor } else { target };
    outcome.with(target);
    outcome.success = true;
    outcome.outcome = "cast".to_owned();
    outcome.notes = format!("{} is on {}.", casting.name, target.name);
    afflict(actor, target, casting, &mut outcome);
    outcome
}

/// Spends the slot. If the spell requires concentration, ends concentration on another spell.
fn pay(actor: &Creature, casting: &Casting, spends: Option<i32>, outcome: &mut Outcome) {
    let creature = || actor.key().to_owned();
    let mut first = Vec::new();
    if let Some(level) = spends {
        first.push(StateChange::SpendSlot { creature: creature(), level });
    }
    if casting.concentration {
        if let Some(old) = &actor.concentration {
            first.push(StateChange::EndConcentration { creature: creature(), spell: old.spell.clone() });
        }
        first.push(StateChange::StartConcentration { creature: creature(), spell: casting.name.clone() });
    }
    outcome.effects.splice(0..0, first);
}
