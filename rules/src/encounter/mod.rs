//! Encounters: fights as simulations, separate from the sheets they began with.
//!
//! An encounter is a state machine. [`Encounter::act`] decides what an [`Action`] does and changes nothing.
//! [`Encounter::apply`] applies one [`Event`] of that decision to the state. Events have results and no dice, so applying a
//! fight's log to its created state gives the same final state, byte for byte. At the end [`Encounter::diff`] says what the
//! fight did to each participant, and [`merge()`] writes that into a sheet.
//!
//! This module must never decide what a resolver decides ([`crate::resolve`]), change a sheet before `merge`, or fail on an
//! event: events about unknown things are ignored. Everything that grows has a limit in [`limits`].
//!
//! - `state`: the participants and the state; `lasting`: how long conditions and effects last; `setup`, `newcomer`: how a
//!   fight begins and who joins; `order`: turn order.
//! - `position`: squares; `place`: terrain, light; `walk`: the cheapest paths between squares; `sight`: how positions and
//!   light affect rolls.
//! - `action`, `refusal`: what can be requested, and why it is rejected; `arguments`: checks of single arguments.
//! - `act`: decides actions, one file per family; `decision`: what an action does.
//! - `choices`: what a participant can do now.
//! - `event`, `fold`: what happened, and how it changes the state.
//! - `snapshot`, `diff`, `merge`, `summary`, `view`: what is shown and what is kept; `seen`: what of it players see.
//!
//! To add an action, add a kind to `action`, a function to a file of `act`, a line to `act::decide`, a case to
//! `rules/tests/encounter` and a row to `docs/encounters.md`.

#![warn(missing_docs)]

mod act;
mod action;
mod arguments;
mod choices;
mod decision;
mod diff;
mod event;
mod fold;
mod lasting;
pub mod limits;
mod merge;
mod newcomer;
mod order;
mod place;
mod position;
mod refusal;
mod seen;
mod setup;
mod sight;
mod snapshot;
mod state;
mod summary;
mod view;
mod walk;

pub use action::{Action, ActionKind, Cast, Cost, Duration};
pub use choices::Choice;
pub use decision::Decision;
pub use diff::{
    Changes, ConditionDetail, ConditionsDiff, Difference, NumberDiff, ParticipantUpdate, ResourceDiff, SlotDiff,
    commit_required,
};
pub use event::{Event, Stance};
pub use lasting::{Lasting, Until};
pub use merge::{MergeOptions, merge};
pub use newcomer::{NewCondition, NewParticipant};
pub use place::{Hazard, Lighting, Terrain};
pub use position::{Position, Square};
pub use refusal::Refusal;
pub use seen::{
    Enemy, SeenAttack, SeenCombatant, SeenDamage, SeenOutcome, SeenParticipant, SeenRoll, SeenRow, SeenView, Watcher,
};
pub use setup::Setup;
pub use snapshot::Snapshot;
pub use state::{Economy, Encounter, EndOutcome, Participant, Provocation, Statistics, Status};
pub use summary::{Best, Summary};
pub use view::{ConditionView, ParticipantDetail, ParticipantView, Verbosity, View};
