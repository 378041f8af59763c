//! Server-sent events (WHATWG HTML, "Server-sent events").

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Bytes, BytesMut},
};
use futures_util::Stream;
use serde::Serialize;

use base::{
    error::{Error, Result},
    text,
};

/// The time between two heartbeats, which keep proxies from closing the connection as idle.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// A heartbeat: a comment without content.
#[must_use]
pub fn heartbeat() -> Bytes {
    Bytes::from_static(b": ping\n\n")
}

/// Tells the client how long to wait before it reconnects.
#[must_use]
pub fn come_back_after(time: Duration) -> Bytes {
    Bytes::from(format!("retry: {}\n\n", time.as_millis()))
}

/// Writes one event, with JSON in which no reader finds a second line. Without an id, a client that reconnects still names the event
/// before it.
///
/// # Errors
/// `internal` if the data cannot be written as JSON.
pub fn event(to: &mut BytesMut, name: &str, id: Option<&str>, data: &impl Serialize) -> Result<()> {
    to.extend_from_slice(format!("event: {name}\n").as_bytes());
    if let Some(id) = id {
        to.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    to.extend_from_slice(b"data: ");
    let data = serde_json::to_string(data).map_err(Error::internal)?;
    to.extend_from_slice(text::json_on_one_line(&data).as_bytes());
    to.extend_from_slice(b"\n\n");
    Ok(())
}

/// Writes one event whose data is a fragment of a page, one `data:` line per line, whatever ends it. Without an id, a client that
/// reconnects receives it again.
pub fn html(to: &mut BytesMut, name: &str, id: Option<&str>, html: &str) {
    to.extend_from_slice(format!("event: {name}\n").as_bytes());
    if let Some(id) = id {
        to.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    for line in text::lines(html.trim_end_matches(['\n', '\r'])) {
        to.extend_from_slice(b"data: ");
        // Some readers end lines at these too. In text and attributes, a reference is the same as the character, and fragments have
        // neither scripts nor styles.
        match line.contains(['\u{2028}', '\u{2029}']) {
            true => {
                to.extend_from_slice(line.replace('\u{2028}', "&#x2028;").replace('\u{2029}', "&#x2029;").as_bytes())
            }
            false => to.extend_from_slice(line.as_bytes()),
        }
        to.extend_from_slice(b"\n");
    }
    to.extend_from_slice(b"\n");
}

/// Answers with a stream of events that proxies must not buffer, cache or change.
pub fn answer(events: impl Stream<Item = Result<Bytes>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream; charset=utf-8")
        .insert_header(("cache-control", "no-store, no-transform"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(events)
}

/// The id of the last event that a reconnecting client received.
#[must_use]
pub fn last_event_id(request: &HttpRequest) -> Option<&str> {
    request.headers().get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty())
}
