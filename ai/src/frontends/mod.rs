//! Frontends: the programs that people play with, each connected for one session.
//!
//! - [`frames`] defines the shape of frames, [`outbox`] queues what is to be sent.
//! - [`hub`] knows the connections of this server; [`connected`] holds it with its limits.
//! - [`question`] is what the server may ask and what comes of it, [`waiting`] the questions without an answer yet, [`whereabouts`] where a
//!   session's frontend is. [`ask`] asks it on this server, or on another through [`mail`].
//! - [`post`] fetches the mail. [`world_changes`] tells a frontend that somebody else changed its world state.
//!
//! `bridge` opens these connections and handles what comes over them. A session has one connection, the newest. A reply
//! counts only if it comes over the connection that was asked, with the question's id, while the asker is waiting.
//! Nothing here holds a transaction while it waits for a frontend.

pub mod ask;
pub mod connected;
pub mod frames;
pub mod hub;
pub mod mail;
pub mod outbox;
pub mod post;
pub mod question;
pub mod waiting;
pub mod whereabouts;
pub mod world_changes;
