//! Dice: formulas, sources of dice, and statistics of formulas.
//!
//! `docs/dice.md` describes the language for people who write formulas, and `docs/fair-dice.md` the provably fair dice.
//! A formula goes from text through `parse` to a `program`, then to `roll` or `analyze`. This module never waits, never
//! reads a clock, never creates randomness, and answers any input in bounded time, because everything that grows has a
//! limit in [`Limits`].
//!
//! To add a modifier see `modifier`, to add a function see `function`, to add a hint see `parse::hints`.

mod analyze;
mod display;
mod error;
mod expand;
mod fair;
mod formula;
mod function;
mod limits;
mod modifier;
mod parse;
mod program;
mod resolve;
mod roll;
mod sides;
mod source;

pub use analyze::{Method, Statistics};
pub use error::{FormulaError, FormulaErrorKind};
pub use expand::{Meaning, Names};
pub use fair::{FairDice, FairSeed, commitment};
pub use formula::Formula;
pub use limits::Limits;
pub use roll::{DieRoll, Flavour, Roll, Verdict};
pub use sides::DieKind;
pub use source::{Dice, Given, OutOfDice, Random};

/// Looks up one of the roller's variables by its name without the `@`, such as `abilities.dex.mod`.
pub type Variables<'a> = dyn Fn(&str) -> Option<f64> + 'a;

/// A roller without variables.
#[must_use]
pub fn no_variables(_: &str) -> Option<f64> {
    None
}
