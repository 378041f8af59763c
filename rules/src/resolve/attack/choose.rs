//! Which weapon or attack a request means.

use crate::{
    resolve::error::Stop,
    sheet::{Creature, NpcAttack, Weapon},
    srd::{Found, WeaponRule, base_weapon, find, holds, same},
};

/// What is attacked with.
pub(crate) enum Choice<'a> {
    /// A weapon on the sheet.
    Weapon(&'a Weapon),
    /// A weapon carried but not written out: an SRD weapon among the inventory.
    Carried(&'a str, &'static WeaponRule),
    /// An attack of a stat block.
    Npc(&'a NpcAttack),
    /// Fists and feet.
    Unarmed,
    /// Whatever lies about.
    Improvised,
}

/// Finds what a name means, or what there is when there is only one.
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
        ([], []) => Err(Stop::Impossible(format!("{} has no weapon; name one", actor.name))),
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

/// Two daggers are as good as one; a sword and another sword are not.
fn alike<T: Copy>(fitting: &[T], name: impl Fn(&T) -> &str, wanted: &str) -> Result<T, Stop> {
    match fitting {
        [first, rest @ ..] if rest.iter().all(|other| same(name(other), name(first))) => Ok(*first),
        _ => Err(Stop::Impossible(format!("\"{wanted}\" may be {}", list(fitting.iter().map(name))))),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
