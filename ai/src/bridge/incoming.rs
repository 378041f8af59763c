//! Handles frames from frontends by type. Events are stored like those of `POST …/sessions/{x}/events`, each in its own
//! transaction.

use db::tenancy;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{FRAMES_PER_MINUTE, turns};
use crate::{
    frontends::{
        frames::{self, Frame, Incoming, Unreadable},
        hub::Connection,
        outbox::Close,
        question::{Asked, Failure},
    },
    state::Ai,
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use edge::limits::Class;
use world::sessions::events::{self, EventInput, EventResult};

/// Handles a message. Errors are sent to the frontend and also returned, to be counted. `admits` says whether the rate limit allows
/// a frame; answers to open questions are always allowed.
///
/// # Errors
/// What is wrong with the message.
pub async fn take(
    app: &Arc<Ai>,
    connection: &Arc<Connection>,
    text: &str,
    mut admits: impl FnMut() -> bool,
) -> Result<()> {
    let (id, taken) = match Incoming::read(text) {
        Ok(frame) => {
            let (id, awaited) = (frame.request_id.clone(), is_awaited(connection, &frame));
            let taken = if awaited || admits() { handle(app, connection, frame).await } else { Err(too_many()) };
            (id, taken)
        }
        Err(Unreadable { error, request_id }) => {
            count("malformed");
            (request_id, Err(if admits() { error } else { too_many() }))
        }
    };
    taken.inspect_err(|error| {
        if let Some(cause) = error.cause() {
            tracing::warn!(session_id = %connection.session.id, %error, %cause, "a frame could not be processed");
        }
        connection.outbox.send(Frame::error(error, id.as_deref()));
    })
}

fn too_many() -> Error {
    Error::new(Code::RateLimited, format!("A connection may send at most {FRAMES_PER_MINUTE} frames a minute."))
}

/// Whether this frame answers an open question.
fn is_awaited(connection: &Connection, frame: &Incoming) -> bool {
    let waits = |asked| connection.waiting.expects(frame.request_id.as_deref(), asked);
    match frame.kind.as_str() {
        "roll_result" => waits(Asked::ExecuteRoll),
        "combat_state" => waits(Asked::CombatStateRefresh),
        "error" => waits(Asked::ExecuteRoll) || waits(Asked::CombatStateRefresh),
        _ => false,
    }
}

async fn handle(app: &Arc<Ai>, connection: &Arc<Connection>, frame: Incoming) -> Result<()> {
    if !app.keys.is_live(&connection.caller()).await? {
        connection.outbox.close(Close::Unauthenticated);
        return Err(Error::new(Code::Unauthenticated, "The credential has expired or was revoked."));
    }
    let kind = event_of(&frame.kind);
    count(if kind.is_some_and(|kind| kind != "combat_state") { "event" } else { frame.kind.as_str() });
    let id = frame.request_id.as_deref();
    match frame.kind.as_str() {
        "ping" => connection.outbox.send(Frame::new("pong", id, &json!({ "server_time": frames::now() }))),
        // An answer without an open question is late or belongs to somebody else. It is ignored.
        "roll_result" => {
            connection.waiting.answer(id, Asked::ExecuteRoll, Ok(frame.data));
        }
        "error" => refuse(connection, &frame),
        "combat_state" if connection.waiting.expects(id, Asked::CombatStateRefresh) => {
            let taken = event(app, connection, "combat_state", frame.data).await;
            let answer = taken.as_ref().map(|_| Value::Null).map_err(|error| Failure::Refused(error.detail.clone()));
            connection.waiting.answer(id, Asked::CombatStateRefresh, answer);
            taken?;
        }
        "turn_request" | "chat_request" => turns::request(app, connection, &frame)?,
        "connect" => return Err(Error::new(Code::BadRequest, "This connection is already connected.")),
        name => {
            let Some(kind) = kind else {
                return Err(Error::new(Code::BadRequest, format!("Unknown message type: {}", short(name))));
            };
            let taken = event(app, connection, kind, frame.data).await?;
            if id.is_some() {
                connection.outbox.send(Frame::new("ack", id, &json!({ "results": taken })));
            }
        }
    }
    Ok(())
}

/// The type of event that a type of frame stands for, including other frontends' names for it.
fn event_of(kind: &str) -> Option<&'static str> {
    let kind = match kind {
        "world_state_sync" => "world_state",
        "combat_context" => "combat_state",
        kind => kind,
    };
    events::KINDS.iter().find(|known| **known == kind).copied()
}

fn count(kind: &str) {
    let known = frames::IN.iter().find(|known| **known == kind).copied().unwrap_or("other");
    metrics::BRIDGE_FRAMES.with_label_values(&["in", known]).inc();
}

fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Handles a frontend's report that it cannot do what it was asked.
fn refuse(connection: &Connection, frame: &Incoming) {
    let text = |name: &str| frame.data.get(name).and_then(Value::as_str);
    let words = text("error").or_else(|| text("message")).unwrap_or("an error without words");
    if !connection.waiting.refuse(frame.request_id.as_deref(), words) {
        tracing::debug!(session_id = %connection.session.id, "a frontend reported an error of its own");
    }
}

/// Stores one event.
async fn event(app: &Ai, connection: &Connection, kind: &str, data: Value) -> Result<Vec<EventResult>> {
    let caller = connection.caller();
    app.limits.check(&caller.tenant, Class::Requests).allowed("requests")?;
    let events = [EventInput { kind: kind.to_owned(), data }];
    let taken = tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        events::take_in(tx, &caller, &connection.session, &events).await
    });
    taken.await.map_err(in_frame)
}

/// Converts the pointers of an event's errors, which go into a list of events, to pointers into the frame.
fn in_frame(error: Error) -> Error {
    error.with_pointers(|pointer| pointer.replacen("/events/0", "", 1))
}
