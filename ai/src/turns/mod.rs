//! AI turns: load, assemble, model, tools, model …, commit, record.
//!
//! - [`answer`] is the turn of an NPC or owner, [`gm`] that of a session's AI; in the turn of [`rules`] the rules decide an action. A
//!   planner's turn is in `planner`.
//! - `frame` runs a turn of any kind from beginning to end, with what is in `cx`. `place` lets turns wait for each other.
//! - [`job`] is a request, [`subject`] what a turn is about, [`kind`] its kind, [`view`] a turn as clients see it, `record` what is kept of it, [`trace`] a
//!   stored one, and [`list`] the list of them.
//! - [`http`] has the routes. [`start`] runs a turn in a task of its own and answers as the client asked.
//! - [`live`] is the log of a turn's events, [`events`] streams them, [`elsewhere`] watches turns of other servers.
//! - [`running`] knows the turns of this process, [`steady`] says whether this process may declare others dead.
//! - [`talk`] is a turn's conversation with the model, and [`ask`] one question to it; [`calls`] runs a batch of tool calls; [`clean`]
//!   cleans what the model says.
//! - [`lab`] shows a prompt and tries it, without a turn.
//! - [`again`] tries answers again, chooses among attempts, and corrects narratives.
//! - [`mod@cancel`] asks a running turn to stop.
//! - [`words`] decides who may read what of a turn.
//! - [`store`] writes everything about the turn itself; [`undo`] undoes a turn.
//!
//! A turn runs in a task of its own; the handler that waits for it does not own it. No transaction is open while a model works. A
//! turn's changes carry its id in the journal, by which a failed turn is reverted and any turn can be undone. The sweeper
//! (`ops::maintenance`) reverts orphaned turns.

pub mod again;
pub mod answer;
pub(crate) mod ask;
mod calls;
pub mod cancel;
pub mod clean;
pub(crate) mod cx;
pub mod elsewhere;
pub mod events;
pub(crate) mod frame;
pub mod gm;
pub mod http;
pub mod job;
pub mod kind;
pub mod lab;
pub mod list;
mod live;
pub(crate) mod place;
pub mod record;
pub mod rules;
pub mod running;
pub mod start;
mod steady;
pub mod store;
pub mod subject;
pub(crate) mod talk;
pub mod trace;
pub mod undo;
pub mod view;
pub mod words;
