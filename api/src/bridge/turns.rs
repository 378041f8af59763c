//! `turn_request`: a frontend asks its session's AI to take a turn.

use std::sync::Arc;

use super::{
    frames::{Frame, Incoming},
    hub::Connection,
};
use crate::{
    app::App,
    error::{Code, Error},
};

/// Starts a turn whose events go to the connection's outbox, each with the request's id. It must not wait for the turn: the
/// connection reads nothing until this returns, not even the dice that the turn asks for.
pub fn request(_app: &Arc<App>, connection: &Arc<Connection>, frame: &Incoming) {
    let error = Error::new(
        Code::FeatureDisabled,
        "Turns are not yet started over the bridge; send POST …/sessions/{id}/turns, and what the AI says comes here.",
    );
    connection.outbox.send(Frame::error(&error, frame.request_id.as_deref()));
}
