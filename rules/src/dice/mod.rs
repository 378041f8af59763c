//! Dice: where they fall from, and what is done with them.

mod source;

pub use source::{Dice, Given, OutOfDice, Random};
