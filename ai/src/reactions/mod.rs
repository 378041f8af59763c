//! NPCs and owners that act by themselves, because a player's actions matter to them or because a player prays.
//!
//! - [`work`] takes queued reactions from the database and runs them as turns, on a thread of its own; [`run`] runs one.
//! - [`pray`] queues the reactions to a prayer.
//! - [`replies`] delivers what reactions say to players. [`stream`] sends replies as server-sent events, [`feed`] sends them with a
//!   campaign's changes. [`http`] has the routes.
//!
//! The queue is a table (`migration/src/sql/reactions.sql`), so nothing is lost when a server dies, and no two servers run the same
//! reaction. Nothing here may make a player's request wait for a model.

pub mod feed;
pub mod http;
mod news;
pub mod pray;
pub mod replies;
mod run;
mod stream;
pub mod work;
