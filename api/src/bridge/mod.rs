//! The bridge: a frontend's own connection. What it reports goes the way of its REST twins; what the AI posts is sent to it; and
//! the AI's tools may ask it for dice and for the state of its fights. `docs/bridge.md` describes every frame.
//!
//! - [`http`] takes the upgrade, [`connect`] reads the first frame, [`socket`] is an open connection, [`frames`] their shape,
//!   [`incoming`] what each type of frame leads to, [`outbox`] what waits to be sent.
//! - [`hub`] knows the connections of this server; [`ask`] asks one of them, or through [`mail`] one of another server; [`post`]
//!   fetches the mail.
//! - [`pushes`] sends what the AI said, from the campaign's journal.
//!
//! A session has one connection, the newest. A reply counts only if it comes over the connection that was asked, with the id
//! that it was asked with, while somebody waits. Nothing here holds a transaction while it waits for a frontend.
//!
//! To add a type of frame: a line in [`incoming`], its name in [`frames::IN`], its section in `docs/bridge.md`, whose examples are
//! played by a test.

pub mod ask;
mod connect;
pub(crate) mod described;
pub mod frames;
pub mod http;
pub mod hub;
mod incoming;
mod mail;
pub mod outbox;
pub mod post;
mod pushes;
mod socket;
mod turns;
mod world;

pub use ask::{Asked, Frontend, Heard, Question, before};
pub use hub::Hub;
pub use mail::prune;
pub use world::world_changed;
