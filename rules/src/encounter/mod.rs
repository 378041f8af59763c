//! An encounter: a fight as a simulation, beside the sheets it began with.
//!
//! It is a state machine. [`Encounter::act`] decides what an [`Action`] comes to and changes nothing;
//! [`Encounter::apply`] folds one [`Event`] of that decision into the state. Events carry results and no dice, so that
//! the log of a fight, folded onto its created state, gives the same state again, byte for byte. At the end
//! [`Encounter::diff`] says what the fight did to everybody, and [`merge()`] writes that into a sheet.
//!
//! It must never decide what a resolver decides ([`crate::resolve`]), change a sheet before `merge`, or fail on an event:
//! what an event names that is not there is passed over. Everything that grows has a limit in [`limits`].
//!
//! - `state`: who takes part, and how it stands; `setup`, `newcomer`: how it begins, and who joins; `order`: whose turn it is.
//! - `place`: squares, terrain, light; `walk`: the cheapest way between squares; `sight`: what place and light do to a roll.
//! - `action`, `refusal`: what can be asked, and why it is refused; `act`: what comes of it, a family a file.
//! - `event`, `fold`: what happened, and how the state follows from it.
//! - `snapshot`, `diff`, `merge`, `summary`, `view`: what is told and what is kept.
//!
//! To add an action: a kind in `action`, a function in a file of `act`, a line in `act::decide`, a case in
//! `rules/tests/encounter`, a row in `docs/encounters.md`.

#![warn(missing_docs)]

mod act;
mod action;
mod diff;
mod event;
mod fold;
pub mod limits;
mod merge;
mod newcomer;
mod order;
mod place;
mod refusal;
mod setup;
mod sight;
mod snapshot;
mod state;
mod summary;
mod view;
mod walk;

pub use act::Decision;
pub use action::{Action, ActionKind, Cast, Cost, Duration};
pub use diff::{
    Changes, ConditionDetail, ConditionsDiff, Difference, NumberDiff, ParticipantUpdate, ResourceDiff, SlotDiff,
    commit_required,
};
pub use event::{Event, Stance};
pub use merge::{MergeOptions, merge};
pub use newcomer::{NewCondition, NewParticipant};
pub use place::{Hazard, Lighting, Position, Square, Terrain};
pub use refusal::Refusal;
pub use setup::Setup;
pub use snapshot::Snapshot;
pub use state::{Economy, Encounter, EndOutcome, Lasting, Participant, Provocation, Statistics, Status, Until};
pub use summary::{Best, Summary};
pub use view::{ConditionView, ParticipantDetail, ParticipantView, Verbosity, View};
