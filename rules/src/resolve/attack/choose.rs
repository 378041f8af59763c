//! Finds the weapon or attack that a request means.

use crate::{
    resolve::error::Stop,
    sheet::{Creature, NpcAttack, Weapon},
    srd::{Found, WeaponRule, base_weapon, find, holds, same},
};

/// The means of an attack.
pub(crate) enum Choice<'a> {
    /// A weapon on the sheet.
    Weapon(&'a Weapon),
    /// An SRD weapon that is only in the inventory, without numbers on the sheet.
    Carried(&'a str, &'static WeaponRule),
    /// An attack of a stat block.
    Npc(&'a NpcAttack),
    /// Fists and feet.
    Unarmed,
    /// Any object at hand.
    Improvised,
}

/// Finds what a name means, or the only weapon or attack that there is.
pub(crate) fn choose<'a>(actor: &'a Creature, wanted: Option<&str>) -> Result<Choice<'a>, Stop> {
    match wanted.map(str::trim).filter(|w| !w.is_empty()) {
        Some(wanted) => named(actor, wanted),
        None => only(actor),
    }
}

fn only(actor: &Creature) -> Result<Choice<'_>, Stop> {
    match (actor.weapons.as_slice(), actor.attacks.as_slice()) {
        ([weapon], []) => Ok(Choice::Weapon(weapon)),
        ([], [attack]) => Ok(Choice::Npc(attack)),
        ([], []) => Err(Stop::Impossible(format!("{} has no weapon; say which one to use", actor.name))),
        (weapons, attacks) => {
            let names = weapons.iter().map(|w| w.name.as_str()).chain(attacks.iter().map(|a| a.name.as_str()));
            Err(Stop::Impossible(format!("which weapon: {}?", list(names))))
        }
    }
}

fn named<'a>(actor: &'a Creature, wanted: &str) -> Result<Choice<'a>, Stop> {
    match find(&actor.weapons, |w| &w.name, wanted) {
        Found::One(weapon) => return Ok(Choice::Weapon(weapon)),
        Found::Several(weapons) => return alike(&weapons, |w| &w.name, wanted).map(Choice::Weapon),
        Found::Nothing => {}
    }
    match find(&actor.attacks, |a| &a.name, wanted) {
        Found::One(attack) => return Ok(Choice::Npc(attack)),
        Found::Several(attacks) => return alike(&attacks, |a| &a.name, wanted).map(Choice::Npc),
        Found::Nothing => {}
    }
    if ["unarmed", "unarmed strike", "unarmed attack", "fist", "fists", "punch", "kick"].iter().any(|u| same(u, wanted))
    {
        return Ok(Choice::Unarmed);
    }
    if holds(wanted, "improvised") {
        return Ok(Choice::Improvised);
    }
    let carried = actor.inventory.iter().filter_map(|item| {
        let base = base_weapon(&item.name)?;
        (same(&item.name, wanted) || holds(&item.name, wanted) || holds(wanted, base.name)).then_some((item, base))
    });
    match carried.collect::<Vec<_>>().as_slice() {
        [] => Err(Stop::Impossible(format!("{} has no weapon called \"{wanted}\"", actor.name))),
        [(item, base)] => Ok(Choice::Carried(&item.name, base)),
        several => alike(several, |(item, _)| &item.name, wanted).map(|(item, base)| Choice::Carried(&item.name, base)),
    }
}

/// Several equal weapons, such as two daggers, count as one. Several different ones are ambiguous.
fn alike<T: Copy>(fitting: &[T], name: impl Fn(&T) -> &str, wanted: &str) -> Result<T, Stop> {
    match fitting {
        [first, rest @ ..] if rest.iter().all(|other| same(name(other), name(first))) => Ok(*first),
        _ => Err(Stop::Impossible(format!("\"{wanted}\" could mean {}", list(fitting.iter().map(name))))),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
