//! A reply while the model writes it, as pieces of a page.

use actix_web::{HttpResponse, web::BytesMut};
use askama::Template;
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use super::{live::COME_BACK_AFTER, notes::Alert};
use ai::turns::events::{Event, Heard, Listener};
use edge::http::sse;

/// A reply that is on its way.
#[derive(Template)]
#[template(path = "table/pending.html")]
pub(crate) struct Pending<'a> {
    /// Where its pieces come from.
    pub(crate) stream: String,
    pub(crate) turn: String,
    /// Who said what it answers, and what that was, unless the page has it already.
    pub(crate) said: Option<(&'a str, &'a str)>,
    pub(crate) npc: &'a str,
}

/// The events of a turn: `text` in pieces, and `done`.
pub(crate) fn event_stream(listener: Listener) -> HttpResponse {
    let events = stream::unfold(Some(listener), async |listener| {
        let mut listener = listener?;
        let events = match listener.next().await {
            Ok(Heard::Silence) => return Some((Ok(sse::heartbeat()), Some(listener))),
            Ok(Heard::Events(events)) => events,
            Ok(Heard::Over) | Err(_) => return Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
        };
        let mut out = BytesMut::new();
        let is_over = events.iter().any(|event| event.is_last);
        for event in &events {
            piece(&mut out, event);
        }
        // Events without text, such as tool calls, still produce a heartbeat.
        let bytes = if out.is_empty() { sse::heartbeat() } else { out.freeze() };
        Some((Ok(bytes), (!is_over).then_some(listener)))
    });
    sse::answer(events.boxed_local())
}

/// One event as a piece of the page.
fn piece(out: &mut BytesMut, event: &Event) {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let failure = match event.name {
        "text.delta" => {
            let text = serde_json::from_str::<Text>(event.data.get()).map(|text| text.text).unwrap_or_default();
            sse::html(out, "text", Some(&event.id), &escaped(&text));
            return;
        }
        "turn.completed" => None,
        "turn.failed" => Some("There was no answer. Your message was undone. Try again."),
        "turn.cancelled" => Some("This was cancelled."),
        _ => return,
    };
    if let Some(message) = failure {
        sse::html(out, "text", Some(&event.id), &Alert { message }.render().unwrap_or_default());
    }
    sse::html(out, "done", Some(&event.id), "");
}

fn escaped(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string()).unwrap_or_default()
}
