//! Dice for everyone who rolls: the fair stream of each campaign, dice somebody rolled by hand, and seeded ones.
//!
//! A roll of the fair stream uses a counter of the campaign's seed and no counter is used twice: it rises in the transaction
//! that keeps the roll's effects. The seed is never shown before it is revealed. What dice mean is the crate `rules`'s affair.

pub mod service;
