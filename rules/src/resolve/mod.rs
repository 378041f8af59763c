//! The resolvers: who does what to whom, with which dice; out come an [`Outcome`] and the [`StateChange`]s it asks for.
//!
//! All are pure: they take creatures by reference, change nothing, and fail only for dice that run out and arguments
//! that cannot be meant ([`RuleError`]). What cannot be done in the game (no such weapon, no slot left) is an outcome
//! marked `impossible`, which consumes no dice and changes nothing. They must never panic, whatever stands on a sheet.
//!
//! Dice are consumed in this order: all d20s (each roll's two when it has advantage or disadvantage, then a Lucky
//! reroll; roll by roll when there are several), then bonus dice in the same order, then damage dice in the order of
//! the breakdown. A miss, and a save that negates, consume no damage dice.
//!
//! - `outcome`, `change`: what comes out; `args`: the circumstances that go in; `error`: what can be wrong with them.
//! - `d20`: one d20 roll with its modifiers and reasons; `rows`: damage dice; `harm`: damage arriving at a creature.
//! - `attack`, `spell`: attacks with weapons and spells.
//! - `check`, `save`, `contest`, `group`, `vitality`, `rest`: the rest of the game.
//!
//! To add a resolver: a function `(actor, arguments, dice) -> Result<Outcome, RuleError>` in its file, its dice order
//! in `docs/rules.md`, its cases in `rules/tests`.

#![warn(missing_docs)]

mod args;
mod attack;
mod change;
mod check;
mod contest;
mod d20;
mod error;
mod group;
mod harm;
mod heal;
mod outcome;
mod rest;
mod rows;
mod save;
mod spell;
mod summary;
mod vitality;

pub use args::{Advantage, Circumstances, Context, Cover, OtherWeapon};
pub use attack::{AttackArgs, resolve_attack};
pub use change::{DamageTaken, StateChange, apply};
pub use check::{
    AbilityCheckArgs, CheckKind, SkillCheckArgs, passive, resolve_ability_check, resolve_skill_check, roll_initiative,
};
pub use contest::{ContestArgs, ContestPurpose, resolve_contest};
pub use error::RuleError;
pub use group::{GroupCheckArgs, resolve_group_check};
pub use harm::{DamageArgs, DamagePart, apply_damage};
pub use heal::{HealingArgs, apply_healing};
pub use outcome::{
    AttackRoll, Automatic, Damage, DamageRow, DieShown, Modifier, Outcome, ParticipantRoll, impossible, no_check,
};
pub use rest::{RestArgs, RestType, take_rest};
pub use save::{SaveDamage, SavingThrowArgs, resolve_saving_throw};
pub use spell::resolve_area_spell;
pub use vitality::{concentration_dc, resolve_concentration, resolve_death_save, resolve_fall};
