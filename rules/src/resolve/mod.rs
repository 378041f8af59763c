//! The resolvers. They take creatures, arguments and dice, and return an [`Outcome`] with the [`StateChange`]s that it
//! requires.
//!
//! All are pure: they take creatures by reference, change nothing, and fail only if dice run out or arguments make no
//! sense ([`RuleError`]). Something that the rules of the game forbid (no such weapon, no slot left) is an outcome
//! marked `impossible`, which uses no dice and changes nothing. Resolvers must never panic, whatever a sheet contains.
//!
//! Dice are used in this order: all d20s (two per roll with advantage or disadvantage, then a Lucky reroll; roll by
//! roll if there are several), then bonus dice in the same order, then damage dice in the order of the breakdown. A
//! miss, or a save that negates, uses no damage dice.
//!
//! - `outcome`, `change`: the results; `new_outcome`: makes outcomes; `args`: the circumstances; `error`: what can be
//!   wrong with a request.
//! - `d20`: one d20 roll with its modifiers and reasons; `rows`: damage dice; `harm`: damage to a creature.
//! - `attack`, `spell`: attacks with weapons and spells; `hit`: whether an attack hits.
//! - `check`, `save`, `contest`, `group`, `vitality`, `rest`: the rest of the game; `word`: what a game master decides without a roll.
//!
//! To add a resolver, add a function `(actor, arguments, dice) -> Result<Outcome, RuleError>` in its own file, its dice
//! order to `docs/rules.md`, and its cases to `rules/tests`.

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
mod hit;
mod new_outcome;
mod outcome;
mod rest;
mod rows;
mod save;
mod spell;
mod summary;
mod vitality;
mod word;

pub use args::{Circumstances, Context, Cover, OtherWeapon};
pub use attack::{AttackArgs, SheetAttack, resolve_attack, sheet_attacks};
pub use change::{DamageTaken, StateChange, apply};
pub use check::{
    AbilityCheckArgs, CheckKind, SkillCheckArgs, initiative_bonus, passive, resolve_ability_check, resolve_skill_check,
    roll_initiative, skill_bonus,
};
pub use contest::{ContestArgs, ContestPurpose, resolve_contest};
pub use error::RuleError;
pub use group::{GroupCheckArgs, resolve_group_check};
pub use harm::{DamageArgs, DamagePart, apply_damage, concentration_dc};
pub use heal::{HealingArgs, apply_healing};
pub use new_outcome::{impossible, no_check};
pub use outcome::{AttackRoll, Automatic, Damage, DamageRow, DieShown, Modifier, Outcome, ParticipantRoll, Parties};
pub use rest::{RestArgs, RestType, take_rest};
pub use save::{SaveDamage, SavingThrowArgs, resolve_saving_throw, save_bonus};
pub use spell::{Aim, aim_of, resolve_area_spell};
pub(crate) use summary::rows_as_text;
pub use vitality::{resolve_concentration, resolve_death_save, resolve_fall};
pub use word::{Word, by_word};
