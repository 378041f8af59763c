//! The bridge: a WebSocket between a frontend and the server. The frontend reports over it as it would over REST. The server sends
//! it what the AI writes. The AI's tools may ask it for dice and for the state of its fights. `docs/bridge.md` describes every
//! frame.
//!
//! - [`http`] accepts the upgrade, [`connect`] reads the first frame, [`socket`] runs an open connection.
//! - [`incoming`] handles each type of frame, [`turns`] runs turns over a connection.
//! - [`reports`] has the routes for reports over REST.
//! - [`pushes`] sends what the AI wrote, from the campaign's journal.
//!
//! The connections themselves, and what the server asks over them, are in [`frontends`](crate::frontends).
//!
//! To add a type of frame, add a line in [`incoming`], its name in [`frontends::frames::IN`](crate::frontends::frames::IN), and its
//! section in `docs/bridge.md`. A test plays the examples of that section.

mod connect;
pub mod described;
pub mod http;
mod incoming;
mod pushes;
pub mod reports;
mod socket;
mod turns;

/// The most frames of a connection in a minute.
const FRAMES_PER_MINUTE: u32 = 1200;
