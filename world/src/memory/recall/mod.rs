//! Finds the memories that matter to what a player does. It needs no model, no extension of the database, no setting for the language and no
//! list of names.
//!
//! It is pure: it reads no table and no clock. [`Corpus`] holds the memories that may be used together, those of one holder about one
//! player. [`Query`] is what a player does. [`Corpus::rank`] gives each memory a score, and [`Corpus::select`] fills a budget.
//! `docs/decisions/0060-recall.md` explains the ranking, its constants and what was tried in vain; [`evaluate`] measures it, so measure
//! before and after you change it: `./dev memory-eval`.

mod corpus;
mod echoes;
pub mod evaluate;
mod query;
mod rank;
mod select;
mod shared;
mod stop_words;
mod terms;

pub use corpus::{Corpus, Memory};
pub use query::{QUERY_CHARS_MAX, Query};
pub use rank::{Ranking, Score};
pub use select::{Decision, Reason, SETTLED_STEP, Section, Selection, settled};
pub use shared::SharedWords;
pub use stop_words::is_stop_word;
