//! The bridge: a WebSocket between a frontend and the server. The frontend reports over it as it would over REST. The server sends
//! it what the AI writes. The AI's tools may ask it for dice and for the state of its fights. `docs/bridge.md` describes every
//! frame.
//!
//! - [`http`] accepts the upgrade, [`connect`] reads the first frame, [`socket`] runs an open connection.
//! - [`frames`] defines the shape of frames, [`incoming`] handles each type, [`outbox`] queues what is to be sent.
//! - [`hub`] knows the connections of this server. [`ask`] asks one of them, or one of another server through [`mail`].
//! - [`post`] fetches the mail. [`pushes`] sends what the AI wrote, from the campaign's journal.
//!
//! A session has one connection, the newest. A reply counts only if it comes over the connection that was asked, with the
//! question's id, while the asker is waiting. Nothing here holds a transaction while it waits for a frontend.
//!
//! To add a type of frame, add a line in [`incoming`], its name in [`frames::IN`], and its section in `docs/bridge.md`. A test
//! plays the examples of that section.

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
