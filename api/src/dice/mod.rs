//! Dice for everyone who rolls: the fair stream of each campaign, dice somebody rolled by hand, and seeded ones.
//!
//! A roll of the fair stream uses a counter of the campaign's seed and no counter is used twice: it rises in the transaction
//! that keeps the roll's effects, whether it was taken there or, by `ahead`, hoped for before it began; if nothing is kept it rises
//! all the same (`spent`), because a failure tells of dice, too. A seed is never shown before it is revealed. What dice mean is the crate `rules`'s affair.
//!
//! - `service`: where the dice of a request fall from; `rolls`: formulas rolled with them, as clients see them.
//! - `reported`: dice that a frontend rolled, believed as far as they can be true.
//! - `spent`: counters that were looked at in vain.
//! - `seeds`: the fair streams as they are kept; `verify`: past rolls once more.
//! - `variables`: what `@name` means, as a client gives it; `sheet`: as a character's or NPC's sheet says.
//!
//! To add a source of dice: a member of [`service::Wish`], a variant of its source, its name as an origin.

pub mod ahead;
pub mod http;
pub mod http_seeds;
pub mod reported;
pub mod rolls;
pub mod seeds;
pub mod service;
pub mod sheet;
pub mod spent;
pub mod variables;
pub mod verify;
