//! Dice for every kind of roll: each campaign's fair stream, dice rolled by hand, and seeded dice.
//!
//! A roll of the fair stream uses a counter of the campaign's seed, and no counter is used twice. The counter rises in the transaction
//! that stores the roll's effects, whether it was taken there or used `ahead` of it. If nothing is stored it rises all the same
//! (`spent`), because even a failure reveals something about the dice. A seed is never shown before it is revealed. The crate `rules`
//! decides what dice mean.
//!
//! - `service`: where a request's dice come from; `rolls`: formulas rolled with them, as clients see the results.
//! - `reported`: dice that a frontend rolled, accepted only if they are possible.
//! - `taken`: the counters that a roll uses; `spent`: counters that were used in vain.
//! - `seeds`: the stored fair streams, and `streams` finds them by name; `verify`: recomputes past rolls.
//! - `variables`: what `@name` means in a client's data; `sheet`: what it means on a character's or NPC's sheet.
//!
//! To add a source of dice, add a member to [`service::Wish`], a variant to its source, and a name for its origin.

pub mod ahead;
pub mod http;
pub mod reported;
pub mod rolls;
pub mod seeds;
pub mod service;
pub mod sheet;
pub mod spent;
pub mod streams;
pub mod taken;
pub mod variables;
pub mod verify;
