//! What players and game masters have in common at the table: [`live`] sends what changes, [`reply`] what a model writes, [`message`] draws what was said,
//! [`again`] lets answers be tried again and go on,
//! [`whisper`] reads whom it is for by its [`name`], [`dice`] rolls a formula, [`command`] reads which of them is meant, and [`notes`] are what is said to one reader alone.

pub(crate) mod again;
pub(crate) mod command;
pub(crate) mod dice;
pub(crate) mod live;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod notes;
pub(crate) mod reply;
pub(crate) mod whisper;
