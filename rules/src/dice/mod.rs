//! Dice: formulas, where dice fall from, and what can be said of them before they fall.
//!
//! `docs/dice.md` describes the language for those who write formulas, `docs/fair-dice.md` the provably fair dice.
//! A formula is text → `parse` → a `program` → `roll` or `analyze`. It never waits, never reads a clock, never makes up
//! randomness, and answers any input in bounded time: whatever grows has a limit in [`Limits`].
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
mod source;

pub use analyze::{Method, Statistics};
pub use error::{FormulaError, FormulaErrorKind};
pub use expand::{Meaning, Names};
pub use fair::{FairDice, FairSeed, commitment};
pub use formula::Formula;
pub use limits::Limits;
pub use program::DieKind;
pub use roll::{DieRoll, Flavour, Roll, Verdict};
pub use source::{Dice, Given, OutOfDice, Random};

/// Looks up a variable of the roller by its name without the `@`, such as `abilities.dex.mod`.
pub type Variables<'a> = dyn Fn(&str) -> Option<f64> + 'a;

/// A roller without variables.
#[must_use]
pub fn no_variables(_: &str) -> Option<f64> {
    None
}
