//! Attacks with weapons, and the entry to those with spells (SRD 5.1, "Making an Attack").
//!
//! - `arm`: the weapon's numbers from sheet and tables; `choose`: which weapon a request means.
//! - `circumstances`: what is possible, and what gives advantage or disadvantage.
//! - `sources`: damage in addition to the weapon's own; `weapon`: the roll itself.

mod args;
mod arm;
mod choose;
mod circumstances;
mod custom;
mod sources;
mod weapon;

use super::{Circumstances, Outcome, RuleError, error::settle, spell};
use crate::{
    dice::Dice,
    sheet::Creature,
    srd::{Found, same},
};

pub use args::AttackArgs;
pub(crate) use circumstances::{Shape, able, helpless, lean};
pub(crate) use custom::custom_rows;
pub use weapon::{SheetAttack, sheet_attacks};

/// Resolves an attack with a weapon or a spell against one target.
///
/// Dice: d20s of all attacks, bonus dice, then damage dice in breakdown order for those that hit.
///
/// # Errors
/// If dice run out.
pub fn resolve_attack(
    actor: &Creature,
    target: &Creature,
    args: &AttackArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    let spell = args.spell_name.as_deref().filter(|s| !s.trim().is_empty());
    let spell = spell.or_else(|| args.weapon.as_deref().filter(|_| args.is_spell_attack));
    settle(match spell {
        Some(name) => spell::cast(actor, target, name, args, circumstances, dice),
        None => match choose::choose(actor, args.weapon.as_deref()) {
            Err(_) if names_a_spell(actor, args) => {
                spell::cast(actor, target, args.weapon.as_deref().unwrap_or_default(), args, circumstances, dice)
            }
            Err(stop) => Err(stop),
            Ok(choice) => weapon::attack(actor, target, &choice, args, circumstances, dice),
        },
    })
}

/// Whether the `weapon` is actually a spell that the actor knows.
fn names_a_spell(actor: &Creature, args: &AttackArgs) -> bool {
    args.weapon.as_deref().is_some_and(|name| {
        actor.spells.iter().any(|s| same(s.name(), name))
            || (actor.is_npc && matches!(crate::srd::spell(name), Found::One(rule) if same(rule.name, name)))
    })
}
