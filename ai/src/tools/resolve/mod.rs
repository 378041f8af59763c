//! The resolver tools: what happens when somebody tries something, decided by the rules.
//!
//! A tool parses its arguments, finds who is meant, and passes both to `world::rules`, which runs the resolver and writes its
//! changes. A tool must never roll, compare or subtract anything itself. Everyone may call these tools, listed or not.
//!
//! - `common`: the arguments that all resolvers share.
//! - `attack`, `checks`, `save`, `together`, `harm`, `rest`, `mark`: the tools, one family per file.
//!
//! To add a tool: its arguments in `resolver_arguments!`, a `ToolSpec`, a line in the registry, and a row in `docs/rules.md`.

mod attack;
mod checks;
mod common;
mod harm;
mod mark;
mod rest;
mod save;
mod together;

pub(super) use attack::ResolveAttack;
pub(super) use checks::{ResolveAbilityCheck, ResolvePassive, ResolveSkillCheck, RollInitiative};
pub(super) use harm::{ApplyDamage, ApplyHealing, ResolveConcentration, ResolveDeathSave, ResolveFall};
pub(super) use mark::{MarkImpossible, MarkNoCheck};
pub(super) use rest::TakeRest;
pub(super) use save::ResolveSavingThrow;
pub(super) use together::{ResolveContest, ResolveGroupCheck};
