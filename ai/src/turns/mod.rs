//! AI turns: load, assemble, model, tools, model …, commit, record.
//!
//! - [`gm`] is the turn of a session's AI; [`rules`] is the turn in which the rules decide an action. A planner's turn is in
//!   `planner`.
//! - [`job`] is a request, [`view`] a turn as clients see it, [`trace`] a stored one, and [`list`] the list of them.
//! - [`http`] has the routes. [`start`] runs a turn in a task of its own and answers as the client asked.
//! - [`live`] is the log of a turn's events, [`events`] streams them, [`elsewhere`] watches turns of other servers.
//! - [`running`] knows the turns of this process, [`place`] lets turns wait for each other, [`steady`] says whether this process may
//!   declare others dead.
//! - [`runner`] runs a turn from beginning to end; [`talk`] is its part with the model, and [`ask`] one question to it; [`calls`] runs
//!   a batch of tool calls; [`clean`] cleans what the model says.
//! - [`lab`] shows a prompt and tries it, without a turn.
//! - [`again`] tries answers again, chooses among attempts, and corrects narratives.
//! - [`words`] decides who may read what of a turn.
//! - [`store`] writes everything about the turn itself; [`undo`] undoes a turn.
//!
//! A turn runs in a task of its own; the handler that waits for it does not own it. No transaction is open while a model works. A
//! turn's changes carry its id in the journal, by which a failed turn is reverted and any turn can be undone. The sweeper
//! (`ops::maintenance`) reverts orphaned turns.

pub mod again;
pub(crate) mod ask;
mod calls;
pub mod clean;
pub mod elsewhere;
pub mod events;
pub mod gm;
pub mod http;
pub mod job;
pub mod lab;
pub mod list;
mod live;
mod place;
pub mod rules;
pub mod runner;
pub mod running;
pub mod start;
mod steady;
pub mod store;
pub(crate) mod talk;
pub mod trace;
pub mod undo;
pub mod view;
pub mod words;
