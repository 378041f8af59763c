//! What players and game masters have in common at the table.
//!
//! - [`live`] sends what changes, and [`reply`] what a model writes. [`message`] draws what was said, [`outcome`] what came of dice, and
//!   [`again`] lets answers be tried again and go on.
//! - [`command`] reads what begins with a slash, [`whisper`] whom it is for by their [`name`], and [`dice`] rolls a formula. [`notes`] are what
//!   is said to one reader alone.
//! - [`story`] shows everything that was said, and makes files of it. [`when`] writes times.

pub(crate) mod again;
pub(crate) mod command;
pub(crate) mod dice;
pub(crate) mod live;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod notes;
pub(crate) mod outcome;
pub(crate) mod reply;
pub(crate) mod story;
mod when;
pub(crate) mod whisper;

/// How long a page waits before it connects again.
const COME_BACK_AFTER: std::time::Duration = std::time::Duration::from_secs(1);
