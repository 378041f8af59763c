//! `turn_request`: a frontend asks its session's AI for a turn and receives the turn's events as `turn_event` frames.
//!
//! The turn does not depend on the connection. It goes on when the connection ends; follow it with `GET …/turns/{id}/events`.

use std::sync::Arc;

use actix_web::web;
use serde_json::{Value, json};

use crate::{
    frontends::{
        frames::{Frame, Incoming},
        hub::Connection,
    },
    state::Ai,
    turns::{
        events::{Heard, Listener},
        gm::{self, http::GmTurnInput, job::GmJob},
        running::Asker,
        start::{Started, start},
        view::TurnView,
    },
};
use base::error::{Code, Error, Result};
use edge::{
    caller::{Caller, Scope},
    http::{bounds, validate},
};

/// Starts a turn without waiting for it. The connection reads no frames until this returns, including the dice that the turn needs.
///
/// # Errors
/// What is wrong with the request, `forbidden` without the scope `gm`, `rate_limited`.
pub fn request(app: &Arc<Ai>, connection: &Arc<Connection>, frame: &Incoming) -> Result<()> {
    let app = web::Data::from(app.clone());
    let caller = connection.caller();
    let started = begin(&app, &caller, connection, frame)?;
    let (connection, id) = (connection.clone(), frame.request_id.clone());
    actix_web::rt::spawn(async move {
        if let Err(error) = tell(app, caller, &connection, id.as_deref(), started).await {
            connection.outbox.send(Frame::error(&error, id.as_deref()));
        }
    });
    Ok(())
}

fn begin(app: &web::Data<Ai>, caller: &Caller, connection: &Connection, frame: &Incoming) -> Result<Started<TurnView>> {
    if caller.is_player() {
        return Err(Error::new(Code::Forbidden, "A player's token may not start a session's turn."));
    }
    caller.needs(Scope::Gm, "Starting a session's turn")?;
    let data = if frame.data.is_null() { json!({}) } else { frame.data.clone() };
    let read = || -> Result<GmTurnInput> {
        let input = bounds::read(data)?;
        validate::check(&input)?;
        Ok(input)
    };
    let input = read().map_err(|error| error.below("/data"))?;
    let session = &connection.session;
    let job: GmJob = input.job(session.campaign.to_string(), session.id, None);
    let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| gm::run(&app, &caller, &job, &asker).await;
    start(app, caller, true, run)
}

/// Sends the turn's events as fast as the frontend reads them.
async fn tell(
    app: web::Data<Ai>,
    caller: Caller,
    connection: &Connection,
    id: Option<&str>,
    started: Started<TurnView>,
) -> Result<()> {
    let turn = started.turn().await?;
    let mut listener = Listener::new(app, &caller, turn, Default::default())?;
    while !connection.outbox.is_ended() {
        let events = match listener.next().await? {
            Heard::Silence => continue,
            Heard::Over => break,
            Heard::Events(events) => events,
        };
        for event in &events {
            connection.outbox.room().await;
            let data: Value = serde_json::from_str(event.data.get()).map_err(Error::internal)?;
            let told = json!({ "event": event.name, "id": event.id, "data": data });
            connection.outbox.send(Frame::new("turn_event", id, &told));
        }
        if events.iter().any(|event| event.is_last) {
            break;
        }
    }
    Ok(())
}
