//! How a request becomes a [`Caller`](crate::caller::Caller), and the routes for keys and tokens.
//!
//! [`gate`] is the middleware that checks the credential, the limits, the campaign, the player and the scope before any
//! handler runs. Nothing else in the server reads an Authorization header. [`expect`] asks it before a large body is sent.

pub mod expect;
pub mod gate;
pub mod http;
pub mod player;
pub mod service;
pub mod whoami;
